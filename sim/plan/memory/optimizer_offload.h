#pragma once

#include <string_view>

#include "sim/plan/memory/memory_plan.h"

namespace tessera {

/// The baseline of `memory.planner`: moments and master weights live in host memory. They are
/// copied to the device behind the last backward pass, where activations have left room, and back
/// once the parameters are updated. Assumed in place of an update by the CPU (ZeRO-Offload, Ren et
/// al., 2021), whose time depends on the host's vector units and memory: both move the states'
/// bytes once each way per step, one over the link, the other through the CPU.
constexpr std::string_view kOptimizerOffload = "optimizer_offload";

/// Rewrites the program of the plan's stage and says what that comes to.
void offload_optimizer(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes,
                       const AllocatorSetting& allocator, Program& program);

/// Of both copies.
Seconds offload_time(const StageMemoryPlan& plan, const remat::HostLink& link);

}  // namespace tessera
