#pragma once

#include <cstddef>
#include <functional>

#include "sim/plan/plan.h"

namespace tessera {

/// Is told how many of a step's pipeline stages have their memory plan; may be empty.
using PlanProgress = std::function<void(std::size_t done, std::size_t all)>;

/// with_memory_plan() of memory_plan.h, watched.
PlannedProgram with_memory_plan(const Scenario& scenario, const KernelPredictor& predictor,
                                TimedProgram timed, const PlanProgress& progress);

/// plan_step_memory() of plan.h, watched. A plan that is tried with smaller micro-batches counts
/// its stages again.
PlannedSteps plan_step_memory(const Scenario& scenario, const PredictorWeights& weights,
                              const PlanProgress& progress);

}  // namespace tessera
