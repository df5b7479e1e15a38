#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/engine/memory/memory_host.h"
#include "sim/engine/memory/op_uses.h"
#include "sim/remat/graph.h"
#include "sim/remat/schedule.h"

namespace tessera {

/// What is left of a GPU's step from `now` on, as a planner sees it: what is on the device was made
/// by operators that have run (Graph::done).
struct RestOfStep {
  remat::Graph graph;
  std::vector<std::int32_t> ops;      ///< of the program, by operator of the graph
  std::vector<std::int32_t> tensors;  ///< in `TensorLives::all()`, by tensor of the graph
};

/// Of a GPU at the moment when it runs short.
struct MemoryNow {
  std::int32_t op = 0;                        ///< that runs next on the compute stream
  Bytes besides;                              ///< in use, beside the tensors that may leave
  std::function<bool(std::int32_t)> is_live;  ///< a tensor: made, and used from now on
  std::function<bool(std::int32_t)> is_here;  ///< on the device
};

RestOfStep rest_of_step(const MemoryHost& host, const TensorLives& lives, const OpUses& uses,
                        const MemoryNow& now);

/// A step of a plan in terms of the program: `id` is an op or a tensor.
struct PlanStep {
  remat::Action action = remat::Action::compute;
  bool again = false;  ///< compute: not the program's own run
  std::int32_t id = 0;
};

/// Without the runs of what has run.
std::vector<PlanStep> steps_of(const RestOfStep& rest, const remat::Schedule& schedule);

}  // namespace tessera
