#pragma once

#include "predictor/kernel_predictor.h"
#include "sim/plan/memory/memory_plan.h"
#include "sim/plan/timed_program.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Scenario -> Program -> TimedProgram. Throws InputError where the model, the layout or the
/// predictor cannot express the scenario.
TimedProgram plan_step(const Scenario& scenario, const PredictorWeights& weights);

/// A step before and after its memory plan.
struct PlannedSteps {
  TimedProgram base;
  TimedProgram planned;
  PlannedStep memory;
};
/// The same with the plan of `scenario.memory`, which plan_step() carries out as well.
PlannedSteps plan_step_memory(const Scenario& scenario, const PredictorWeights& weights);

/// What the durations of `plan_step` rest on.
PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights);
/// The same, with what of the kernels in use was never measured.
PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights,
                                 const TimedProgram& timed);

}  // namespace tessera
