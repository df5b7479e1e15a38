#pragma once

#include "sim/plan/device_memory.h"
#include "sim/scenario/scenario.h"
#include "workloads/memory/memory_bytes.h"

namespace tessera {

/// What the fullest GPU of a step needs, and for what. From the order of its program alone: nothing
/// is timed, but what a memory plan needs.
struct MemoryNeed {
  int stage = 0;        ///< pipeline stage of the fullest GPU
  CategoryBytes parts;  ///< of its tensors, at their peak
  DeviceMemory device;
  Bytes capacity;  ///< of the smallest GPU in use

  /// What the allocator holds beyond the tensors: rounded, split and cached blocks.
  Bytes fragmentation() const { return device.reserved - device.allocated; }
};

/// How much of a step is looked at.
enum class NeedScope : std::uint8_t {
  all,
  /// The first two stages and the last, with four micro-batches for each stage at most: as `all`
  /// says, unless a stage between needs most.
  quick,
};

/// Throws InputError where the scenario cannot be planned.
MemoryNeed memory_need(const Scenario& scenario, const PredictorWeights& weights, NeedScope scope);

/// `DeviceMemory::total()` of it alone, for half the time.
Bytes total_need(const Scenario& scenario, const PredictorWeights& weights, NeedScope scope);

}  // namespace tessera
