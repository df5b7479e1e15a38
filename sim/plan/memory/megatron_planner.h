#pragma once

#include <memory>

#include "sim/plan/memory/stage_graph.h"
#include "sim/remat/planner.h"
#include "sim/scenario/memory_settings.h"

namespace tessera {

/// Megatron's --recompute-method: "megatron_block" runs the first n layers of a stage again and
/// keeps the others, with the least n that fits; "megatron_uniform" keeps the input of every n
/// layers, with the n that fits and costs least. `layers` > 0: with this n. Null for others.
/// The planner refers to `stage` and `graph`.
std::unique_ptr<remat::Planner> make_megatron_planner(MemoryPlanner kind, int layers,
                                                      const StageOps& stage,
                                                      const StageGraph& graph);

}  // namespace tessera
