#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// When the host of a rank has come to each of its ops, and when the communication that it issued
/// up to there has ended; by op, from the start of the step. A host runs ahead of its GPU: what it
/// frees then, kernels behind reuse in the order of launches, but a block that PyTorch recorded on
/// another stream (`FrameworkProfile::records_streams`) is another's only once that stream is as
/// far. Source: c10/cuda/CUDACachingAllocator.cpp, insert_events and process_events;
/// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, recordStream.
struct StepLaunches {
  std::vector<Seconds> issued;
  std::vector<Seconds> communicated;

  /// Nothing is known: blocks are reused in the order of launches.
  bool empty() const { return issued.empty(); }
  Seconds issued_at(std::int32_t op) const { return issued[static_cast<std::size_t>(op)]; }
  Seconds communicated_by(std::int32_t op) const {
    return communicated[static_cast<std::size_t>(op)];
  }
};

/// Of a job's first step, and of those behind it.
struct LaunchTimes {
  StepLaunches first, later;
  int micro_batches = 0;  ///< those from this number on are not timed

  bool empty() const { return later.empty(); }
};

}  // namespace tessera
