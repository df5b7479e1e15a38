#pragma once

#include <algorithm>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// What a way of measuring adds to the time of a collective in a stream. The defaults are fitted to
/// published sweeps with the constants of collective_constants.h.
struct LaunchStyles {
  Seconds mpi{1.2e-6};          ///< added: nccl-tests, one process per GPU
  Seconds torch{35e-6};         ///< added: a PyTorch loop between CUDA events
  Seconds kineto_floor{40e-6};  ///< least time of an all-reduce's kernel in a profile of a serving
                                ///< loop: it waits for the last rank to be launched

  /// `launch` as in files of measurements; an unknown one adds nothing. nccl-tests with one process
  /// for all GPUs adds 0 to 40 us, which no column tells apart: nothing here.
  Seconds measured(Seconds alone, const std::string& launch, bool reduces) const {
    if (launch == "nccl-tests-mpi") return alone + mpi;
    if (launch == "torch") return alone + torch;
    if (launch == "kineto" && reduces) return std::max(alone, kineto_floor);
    return alone;
  }
};

}  // namespace tessera
