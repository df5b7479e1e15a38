#pragma once

#include <cstdint>
#include <filesystem>

#include "hw/units/quantity.h"

namespace tessera {

/// What calls of one kind took the host.
struct HostCallCost {
  std::int64_t calls = 0;
  Seconds mean;    ///< 0 without calls
  Seconds median;  ///< likewise
};

/// The host's side of a PyTorch profile (Kineto) of one rank. A call is an operator that no other
/// operator made, and takes the time to the next call of its thread: Python behind it included.
struct HostTrace {
  HostCallCost operators;    ///< of eager code, launching kernels or not
  HostCallCost compiled;     ///< inside a region of torch.compile
  HostCallCost collectives;  ///< of torch.distributed
  HostCallCost messages;     ///< sends and receives of torch.distributed
  std::int64_t waited = 0;   ///< calls left out: the host waited, for the GPU, a full queue of
                             ///< launches, memory or another thread
  int steps = 0;  ///< "ProfilerStep" ranges, to which all calls belong; 0: none is marked
};

/// Reads a trace as `read_kineto` does. Throws InputError with what is wrong in the file, or where
/// it has no operator of the host.
HostTrace read_host_trace(const std::filesystem::path& path);

}  // namespace tessera
