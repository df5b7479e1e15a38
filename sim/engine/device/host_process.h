#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/engine/device/gpu.h"
#include "sim/engine/network/shared_links.h"

namespace tessera {

/// The training process of one rank: launches the ops of its program in order and waits where the
/// framework would (.item(), synchronize). It runs ahead of its GPU without limit otherwise; a step
/// has fewer launches than make the CUDA driver hold a process back. In SimGrid it is an actor.
class HostProcess {
 public:
  explicit HostProcess(Gpu& gpu) : gpu_(gpu) {}

  /// Launches from the clock's date on; from an action of the clock.
  void begin() { launch(-1, gpu_.context().clock.now()); }
  /// As an actor on the host of `gpu`, where launches are left, until the last one. It sleeps: what
  /// it would do when a wait ends is done by actions of the clock, without a switch to the actor
  /// and back.
  void live_on(SharedLinks& simgrid, const std::string& name, int gpu);

 private:
  /// The ops behind `after`, which ended at `since`, up to the next one that the host waits for.
  void launch(std::int32_t after, Seconds since);
  std::size_t waits() const { return gpu_.queues().launches.waits.size(); }

  Gpu& gpu_;
  std::unique_ptr<SharedLinks::Actor> actor_;  ///< null where there is none
  std::size_t waits_begun_ = 0;
  bool all_launched_ = false;
};

}  // namespace tessera
