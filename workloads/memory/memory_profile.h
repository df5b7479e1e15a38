#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "workloads/memory/launch_times.h"
#include "workloads/memory/memory_bytes.h"
#include "workloads/program/program.h"

namespace tessera {

/// Memory of a rank while one of its ops runs.
struct OpMemory {
  std::int32_t op = 0;    ///< in `RankProgram::ops`; kernels only
  CategoryBytes highest;  ///< at the moment of the op's highest total
  CategoryBytes afterwards;
};

/// What lives at the peak, allocations of one name together.
struct LiveMemory {
  std::string name;  ///< "layer.attention.qkv"
  MemoryCategory category = MemoryCategory::activations;
  int count = 0;  ///< allocations: layers times micro-batches
  Bytes bytes;
};

/// Memory of a rank over a step, in the order of its compute stream.
struct MemoryProfile {
  Bytes peak;  ///< static memory and workspaces included
  CategoryBytes at_peak;
  std::int32_t peak_op = -1;     ///< in `RankProgram::ops`; -1: no op takes memory
  std::int32_t peak_kernel = 0;  ///< of its segment
  std::vector<LiveMemory> live;  ///< at the peak besides static memory, largest first
  Bytes reserved;                ///< highest that the allocator holds
  std::vector<OpMemory> over_ops;
};

/// What a rank's allocator starts from.
struct AllocatorSetting {
  Bytes workspaces;  ///< what libraries take from it for the whole step
  Bytes capacity = Bytes(std::numeric_limits<std::int64_t>::max());  ///< of the device, for it
  bool planned = false;  ///< it lays everything out ahead of the step: `reserved` is the peak
};

/// One of the tensors that a rank holds for the whole step.
struct StaticTensor {
  MemoryCategory category = MemoryCategory::parameters;
  Bytes bytes;
};
/// In the order in which a framework makes them: of every category as the parameters are divided,
/// then what libraries hold.
std::vector<StaticTensor> static_tensors(const Program& program, int stage, Bytes workspaces);

MemoryProfile profile_memory(const Program& program, int stage, const AllocatorSetting& setting);

/// `MemoryProfile::at_peak` alone, whose total is the peak, for a third of the time.
CategoryBytes peak_memory(const Program& program, int stage, Bytes workspaces);

/// `MemoryProfile::reserved` alone, for less time; with `times` of a host that runs ahead.
Bytes reserved_memory(const Program& program, int stage, const AllocatorSetting& setting,
                      const LaunchTimes& times = {});

/// What `profile` has beyond `budget`, or its allocator beyond what the device has for it; at most
/// 0 where it is within both.
Bytes missing_bytes(const MemoryProfile& profile, const AllocatorSetting& allocator, Bytes budget);

}  // namespace tessera
