#pragma once

#include <optional>
#include <vector>

#include "hw/node.h"
#include "sim/plan/memory/memory_plan.h"
#include "workloads/step_options.h"

namespace tessera {

/// One GPU's share of its node's drives.
struct DriveRates {
  BytesPerSecond read, write;
  Seconds latency;
};
/// Of a node that has drives.
DriveRates drive_rates_of(const NodeSpec& node);

/// A transfer between host memory and drives, on StreamKind::host.
struct DriveTransfer {
  SegmentId segment;  ///< empty
  Seconds time;
};

/// `memory.planner: optimizer_offload`: moments and master weights live in host memory. They are
/// copied to the device behind the last backward pass, where activations have left room, and back
/// once the parameters are updated. Assumed in place of an update by the CPU (ZeRO-Offload, Ren et
/// al., 2021), whose time depends on the host's vector units and memory: both move the states'
/// bytes once each way per step, one over the link, the other through the CPU.
///
/// Rewrites the program of the plan's stage and says what that comes to. With `rates` the states
/// wait on drives: they are read whole into host memory ahead of the copy to the device, and
/// written behind the copy back, neither beside the copies; `transfers` gets both.
void offload_optimizer(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes,
                       const AllocatorSetting& allocator, Program& program,
                       const std::optional<DriveRates>& rates = {},
                       std::vector<DriveTransfer>* transfers = nullptr);

/// ZeRO-Offload (Ren et al., 2021), `memory.planner: cpu_optimizer`: moments, master weights and,
/// where the model holds fp32 weights alone, a copy of those live in host memory; behind the last
/// backward pass the gradients of the rank's shard go down, the CPU updates, and the weights of the
/// shard come back. The CPU's time is the bytes that it reads and writes, each state both ways,
/// over the bandwidth of its memory: DeepSpeed's vectorized Adam keeps up with that
/// (csrc/adam/cpu_adam.cpp). Transfers do not run beside backward or the update, as DeepSpeed's do
/// in part: an upper bound.
///
/// An update of a stage:
struct CpuUpdate {
  SegmentId segment;  ///< empty; runs on StreamKind::host
  Bytes moved;        ///< by the CPU, of its memory
  Seconds time;
};

/// Rewrites the program of the plan's stage. `bandwidth`: of host memory, for one GPU; above 0.
CpuUpdate update_on_cpu(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes,
                        BytesPerSecond bandwidth, const AllocatorSetting& allocator,
                        const StepOptions& step, Program& program);

/// Of both copies.
Seconds offload_time(const StageMemoryPlan& plan, const remat::HostLink& link);

}  // namespace tessera
