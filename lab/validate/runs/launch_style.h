#pragma once

#include <algorithm>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// nccl-tests -g N: one thread launches on all N GPUs.
inline constexpr const char* kOneThread = "nccl-tests-one-thread";

/// What a way of measuring adds to the time of a collective in a stream. The defaults are fitted to
/// published sweeps with the constants of collective_constants.h.
struct LaunchStyles {
  Seconds mpi{1.2e-6};          ///< added: nccl-tests, one process per GPU
  Seconds torch{35e-6};         ///< added: a PyTorch loop between CUDA events
  Seconds kineto_floor{40e-6};  ///< least time of an all-reduce's kernel in a profile of a serving
                                ///< loop: it waits for the last rank to be launched

  Seconds launch_of_a_gpu{5.0e-6};  ///< of one thread that launches on every GPU in turn: no
                                    ///< collective takes less than that for all of them

  /// `launch` as in files of measurements, with `ranks` GPUs; an unknown one adds nothing, nor do
  /// threads that launch on a GPU each (nccl-tests -t).
  Seconds measured(Seconds alone, const std::string& launch, int ranks, bool reduces) const {
    if (launch == "nccl-tests-mpi") return alone + mpi;
    if (launch == kOneThread) return std::max(alone, launch_of_a_gpu * ranks);
    if (launch == "torch") return alone + torch;
    if (launch == "kineto" && reduces) return std::max(alone, kineto_floor);
    return alone;
  }
};

}  // namespace tessera
