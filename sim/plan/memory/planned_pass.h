#pragma once

#include <array>
#include <vector>

#include "sim/plan/memory/stage_graph.h"
#include "sim/remat/schedule.h"
#include "workloads/program/program.h"

namespace tessera {

/// Op `op` of part `part` of a micro-batch's passes; op < 0: none.
struct PlannedWait {
  int part = 0;
  int op = -1;
};

struct PlannedOp {
  ProgramOp op;
  std::vector<PlannedWait> waits;
  int run = 0;  ///< how many blocks the pass has begun before the last one that it works on
};
using MemoryPass = std::vector<PlannedOp>;

/// The passes of a chunk's micro-batch under a memory plan.
struct MemoryPasses {
  int chunk = 0;
  bool splits = false;  ///< of micro-batches whose backward pass is split
  std::array<MemoryPass, kPassParts> usual;
  /// Of a step's first micro-batch: forward with what is done once, backward where its gradients
  /// become the buffers; parts are empty if
  /// that makes no difference.
  std::array<MemoryPass, kPassParts> first;
};

/// Turns a schedule into segments of kernels, which are appended to `segments`, and copies: what
/// runs again becomes kernels, what is swapped becomes copies that kernels wait for. `block`: index
/// of the chunk's tensors in `Program::blocks`. `apart`: each operator is a segment, and what can
/// run once more is marked so, for a step whose memory may be shorter than the plan's.
MemoryPasses write_passes(const StageOps& stage, const StageGraph& graph,
                          const remat::Schedule& schedule, std::int32_t block,
                          const std::vector<std::string>& block_names,
                          std::vector<Segment>& segments, bool apart = false);

}  // namespace tessera
