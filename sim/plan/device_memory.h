#pragma once

#include <map>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/plan/timed_program.h"
#include "workloads/memory/launch_times.h"

namespace tessera {

/// What a GPU gives to a step. It decides whether the step fits.
struct DeviceMemory {
  Bytes allocated;      ///< highest use of tensors and workspaces
  Bytes reserved;       ///< what the allocator must hold for them, having given back all it can
  Bytes context;        ///< of CUDA, with loaded kernels
  Bytes communicators;  ///< buffers of NCCL

  /// What nvidia-smi shows.
  Bytes total() const { return reserved + context + communicators; }
};

/// What the GPUs of a step give to it.
class DeviceMemories {
 public:
  /// `timed` must outlive the object.
  explicit DeviceMemories(const TimedProgram& timed) : timed_(timed) {}

  /// A GPU of `stage`, whose tensors take `allocated` at most. Under a limit at run time the
  /// allocator holds no more than that: what it gives back meanwhile is not followed.
  DeviceMemory of(int stage, Bytes allocated);

 private:
  Bytes reserved_by(int stage);

  const TimedProgram& timed_;
  std::map<int, Bytes> reserved_;   ///< by stage
  std::vector<LaunchTimes> times_;  ///< likewise, once one was asked for
};

/// What of `TimedProgram::memory_capacity` is left to the allocator beside context and NCCL.
Bytes room_for_tensors(const TimedProgram& timed);

/// `timed` with no more capacity than what the device holds where the allocator holds `budget`.
TimedProgram kept_within(Bytes budget, TimedProgram timed);

}  // namespace tessera
