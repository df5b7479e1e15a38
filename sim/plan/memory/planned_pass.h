#pragma once

#include <vector>

#include "sim/plan/memory/stage_graph.h"
#include "sim/remat/schedule.h"
#include "workloads/program.h"

namespace tessera {

/// An op of a planned pass; `waits` count from the pass's first op. -2 - i: op i of the forward
/// pass of the same micro-batch.
struct PlannedOp {
  ProgramOp op;
  std::vector<int> waits;
  bool starts_pass = false;  ///< first kernels: wait for the message that starts the pass
};
using MemoryPass = std::vector<PlannedOp>;

/// Both passes of a stage's micro-batch under a memory plan.
struct MemoryPasses {
  MemoryPass forward;
  MemoryPass backward;
  MemoryPass first_backward;  ///< where the first micro-batch's gradients become the buffers
};

/// Turns a schedule into segments of kernels, which are appended to `segments`, and copies: what
/// runs again becomes kernels, what is swapped becomes copies that kernels wait for. `block`: index
/// of the stage's tensors in `Program::blocks`.
MemoryPasses write_passes(const StageOps& stage, const StageGraph& graph,
                          const remat::Schedule& schedule, std::int32_t block,
                          const std::vector<std::string>& block_names,
                          std::vector<Segment>& segments);

}  // namespace tessera
