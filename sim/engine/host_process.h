#pragma once

#include <simgrid/s4u.hpp>

#include "sim/engine/gpu.h"

namespace tessera {

/// The training process of one rank, an actor of SimGrid: launches the ops of its program in order
/// and waits where the framework would (.item(), synchronize). It runs ahead of its GPU without
/// limit otherwise; a step has fewer launches than make the CUDA driver hold a process back.
class HostProcess {
 public:
  explicit HostProcess(Gpu& gpu) : gpu_(gpu), ended_(simgrid::s4u::Semaphore::create(0)) {}

  void run();

 private:
  void submit();
  void synchronize(std::int32_t op);

  Gpu& gpu_;
  simgrid::s4u::SemaphorePtr ended_;
  bool awake_ = false;  ///< woken, and SimGrid's clock waits until the host has submitted again
};

}  // namespace tessera
