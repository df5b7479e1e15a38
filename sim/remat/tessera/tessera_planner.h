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

}  // namespace tessera::remat
