#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hw/topology/topology.h"
#include "hw/units/quantity.h"
#include "predictor/kernel_predictor.h"
#include "sim/plan/library_memory.h"
#include "sim/plan/rank_pace.h"
#include "sim/plan/timed_segment.h"
#include "sim/remat/schedule.h"
#include "sim/scenario/collective_settings.h"
#include "sim/scenario/memory_settings.h"
#include "sim/scenario/simulation_settings.h"
#include "workloads/program/program.h"

namespace tessera {

/// One of the distinct kernels of a program.
struct TimedKernel {
  Kernel kernel;
  KernelPrediction prediction;
};

/// What the copy engine needs to start a copy between device and host: 10 us for small asynchronous
/// copies of pinned memory, the default of `tessera plan graph`.
constexpr Seconds kCopyStart = 10_us;

/// What a GPU's allocator gets, and what may be done at run time where that is not enough.
struct MemoryLimit {
  Bytes bytes;            ///< 0: use is recorded, not limited
  bool swap = true;       ///< tensors may be copied to host memory
  bool recompute = true;  ///< tensors of forward passes may be given up and made again
  Bytes host_bytes = Bytes(std::numeric_limits<std::int64_t>::max());  ///< per GPU, for them
  PressurePolicy policy = PressurePolicy::rule;
  /// By pipeline stage: the way to host memory where all GPUs copy at once; for policies that plan.
  std::vector<remat::HostLink> links = {};
};

/// A Program with everything the engine has to know about time. Immutable; the engine adds only
/// contention and waiting.
struct TimedProgram {
  Program program;
  std::vector<TimedSegment> segments;  ///< parallel to Program::segments
  Topology topology;
  Seconds communication_host_time;  ///< what the host needs to issue one collective
  Bytes memory_capacity;            ///< per GPU
  LibraryMemory library_memory = {};
  std::vector<TimedKernel> kernels = {};  ///< distinct ones; segments refer to them
  CollectiveSettings collectives = {};
  SimulationSettings simulation = {};
  /// Of each GPU, for all its streams but those of copies: no kernel starts ahead of one that was
  /// launched before it, whatever that one waits for (CUDA_DEVICE_MAX_CONNECTIONS=1).
  bool single_hardware_queue = false;
  bool records_streams = false;  ///< FrameworkProfile::records_streams
  RankPaces paces = {};          ///< ranks that run their kernels in other times
  MemoryLimit memory_limit = {};
  std::optional<Seconds> message_host_time = {};  ///< of a message; none: as of a collective
  /// By GroupKind: what a collective takes the host besides (MeasuredFabric::per_rank).
  std::array<Seconds, kGroupKindCount> group_host_time = {};

  /// What the host needs to issue `op`.
  Seconds host_time_of(const ProgramOp& op) const {
    if (op.kind == OpKind::kernels)
      return segments[static_cast<std::size_t>(op.segment.index())].host_time;
    if (is_collective(op.kind))
      return communication_host_time + group_host_time[static_cast<std::size_t>(op.group)];
    const bool message = op.kind == OpKind::send || op.kind == OpKind::recv;
    return message ? message_host_time.value_or(communication_host_time) : communication_host_time;
  }
  /// What op `op` of `rank`, which runs `segment`, takes alone on its GPU.
  Seconds duration_of(int rank, std::int32_t op, SegmentId segment) const {
    return paces.duration(rank, op, segment_of(rank, segment));
  }
  /// `segment` as the GPU of `rank` runs it; without its slowdown and jitter.
  const TimedSegment& segment_of(int rank, SegmentId segment) const {
    const auto number = static_cast<std::size_t>(segment.index());
    return paces.segment(rank, number, segments[number]);
  }
};

}  // namespace tessera
