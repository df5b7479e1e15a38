#include "sim/remat/baselines/baselines.h"
#include "sim/remat/exact/exact_search.h"

namespace tessera::remat {

PlannedSchedule ExactPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  if (std::optional<ExactPlan> found = exact_recompute(graph, request.budget, false))
    return {.schedule = std::move(found->schedule)};
  PlannedSchedule planned = NonePlanner().plan(graph, request);
  planned.note = "recomputation in program order cannot meet the budget";
  return planned;
}

}  // namespace tessera::remat
