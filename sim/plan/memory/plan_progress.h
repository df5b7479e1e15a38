#pragma once

#include <cstddef>
#include <functional>

#include "sim/plan/plan.h"

namespace tessera {

/// Is told how many of a step's pipeline stages have their memory plan; may be empty.
using PlanProgress = std::function<void(std::size_t done, std::size_t all)>;

/// How a step's memory is planned.
struct PlanManner {
  PlanProgress progress = {};
  /// By drafts, for who asks whether there is a plan rather than for a fast one: a quarter of the
  /// sweeps of a plan under pressure. Of planner tessera alone; others have one effort.
  bool drafts = false;
  /// With StageMemoryPlan::certified_gap, which takes a tenth of a search for layouts.
  bool certifies = true;
};

/// with_memory_plan() of memory_plan.h, in that manner.
PlannedProgram with_memory_plan(const Scenario& scenario, const KernelPredictor& predictor,
                                TimedProgram timed, const PlanManner& manner);

/// plan_step_memory() of plan.h, in that manner. A plan that is tried with smaller micro-batches
/// counts its stages again.
PlannedSteps plan_step_memory(const Scenario& scenario, const PredictorWeights& weights,
                              const PlanManner& manner);

/// The stage of the highest peak, without a plan: `static_bytes`, `base_peak`.
StageMemoryPlan fullest_stage_without_plan(const Scenario& scenario,
                                           const PredictorWeights& weights);

}  // namespace tessera
