#pragma once

#include <memory>
#include <string_view>

#include "sim/plan/memory/stage_graph.h"
#include "sim/remat/planner.h"

namespace tessera {

/// Megatron's --recompute-method: "megatron_block" runs the first n layers of a stage again and
/// keeps the others, with the least n that fits; "megatron_uniform" keeps the input of every n
/// layers, with the n that fits and costs least. `layers` > 0: with this n. Null for other names.
/// The planner refers to `stage` and `graph`.
std::unique_ptr<remat::Planner> make_megatron_planner(std::string_view name, int layers,
                                                      const StageOps& stage,
                                                      const StageGraph& graph);
/// A planner that takes a number of layers.
bool is_megatron_planner(std::string_view name);

}  // namespace tessera
