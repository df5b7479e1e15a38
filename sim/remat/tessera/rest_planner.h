#pragma once

#include "sim/remat/planner.h"

namespace tessera::remat {

/// A plan for what is left of a step whose memory has run short (Graph::done operators have run):
/// within a few tens of milliseconds, so prices alone, a tenth of the sweeps of Effort::fast, fewer
/// the larger the graph. Recomputation first, then copies in the same prices. `least_peak` is set
/// where the schedule exceeds the budget.
/// `share`: of those sweeps.
PlannedSchedule plan_rest(const Graph& graph, const PlanRequest& request, double share = 1);

}  // namespace tessera::remat
