#pragma once

#include "sim/remat/planner.h"

namespace tessera::remat {

/// Our planner: prices per stage and byte (PriceSearch); annealing where the graph is small; with a
/// link the same again with swapping as a third choice, never slower than recomputation alone.
/// Feasible for every budget from the lower bound up where swapping is allowed and host memory
/// suffices.
class TesseraPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// Plans for many budgets of one graph, in the order given: each starts from the prices of the next
/// larger budget, so that a curve costs little more than a few plans. A budget below the lower
/// bound gets an empty schedule. `request.budget` and `.effort` are ignored.
std::vector<PlannedSchedule> plan_budgets(const Graph& graph, const std::vector<ByteCount>& budgets,
                                          const PlanRequest& request);

}  // namespace tessera::remat
