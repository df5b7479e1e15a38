#pragma once

#include "sim/remat/planner.h"
#include "sim/remat/stage_plan.h"

namespace tessera::remat {

/// Libra (Wang, National Tsing Hua University): greedy refinement of an offline plan, recomputation
/// first, swapping where a recomputation chain makes a new peak. Only its abstract and table of
/// contents are public; these are our readings of what they leave open:
/// 1. The decision unit is the gap between two uses of a tensor in the current plan, dropped again
///    after each reader (no holding unless refinement adds it).
/// 2. Memory is replayed exactly for every candidate, chains included, not estimated.
/// 3. Of the tensors that cross the peak, the 32 with most bytes per producer time are tried.
/// 4. "New peak": dropping and running again lowers neither the peak nor the bytes over the budget.
///    Such a candidate is tried as a swap; a swap is taken only where no recomputation helps.
/// 5. The best candidate has the least time added per byte over the budget removed.
/// 6. Where none helps, the largest tensor that runs again in the peak's stage is swapped instead
///    (its chain is cut), else the best candidate is.
/// 7. Refinement: up to 4 rounds over all regenerations; one is undone where the plan still fits
///    and becomes faster.
/// 8. Copies are prefetched by our copy calendar; time is what the replay says.
/// 9. Where single steps are stuck, every gap is swapped on demand, then refined (said in `note`).
/// Graphs beyond 512 operators or tensors get 9 alone.
class LibraPlanner : public Planner {
 public:
  /// Without `refines`: the greedy plan as it first fits, to see what refinement gains.
  explicit LibraPlanner(bool refines = true) : refines_(refines) {}
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;

 private:
  bool refines_;
};

/// The plan of the same search, for others to start from; nothing where it does not fit.
std::optional<StagePlan> greedy_refinement(const Graph& graph, const PlanRequest& request);

}  // namespace tessera::remat
