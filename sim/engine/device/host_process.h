#pragma once

#include <cstddef>
#include <simgrid/s4u.hpp>

#include "sim/engine/device/gpu.h"

namespace tessera {

/// The training process of one rank, an actor of SimGrid: launches the ops of its program in order
/// and waits where the framework would (.item(), synchronize). It runs ahead of its GPU without
/// limit otherwise; a step has fewer launches than make the CUDA driver hold a process back.
class HostProcess {
 public:
  explicit HostProcess(Gpu& gpu) : gpu_(gpu), all_launched_(simgrid::s4u::Semaphore::create(0)) {}

  /// The actor. Between its first and its last launch it sleeps: what it would do when a wait ends
  /// is done by actions of the clock, without a switch to the actor and back.
  void run();
  /// The same at the clock's date without the actor, from an action of the clock.
  void begin() { launch(-1, gpu_.context().clock.now()); }

 private:
  /// The ops behind `after`, which ended at `since`, up to the next one that the host waits for.
  void launch(std::int32_t after, Seconds since);
  std::size_t waits() const { return gpu_.queues().launches.waits.size(); }

  Gpu& gpu_;
  simgrid::s4u::SemaphorePtr all_launched_;
  std::size_t waits_begun_ = 0;
};

}  // namespace tessera
