#pragma once

#include "sim/remat/planner.h"

namespace tessera::remat {

/// A plan for what is left of a step whose memory has run short (Graph::done operators have run):
/// within a few tens of milliseconds, so the better of `plan_by_prices` and of what relieves one
/// peak after the other, as Capuchin does. `least_peak` is set where there is none in the budget.
PlannedSchedule plan_rest(const Graph& graph, const PlanRequest& request);

/// Prices alone, in a tenth of the sweeps of Effort::fast, fewer the larger the graph.
/// Recomputation first, then copies in the same prices. `share`: of those sweeps.
PlannedSchedule plan_by_prices(const Graph& graph, const PlanRequest& request, double share = 1);

}  // namespace tessera::remat
