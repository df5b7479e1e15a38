#pragma once

#include "predictor/kernel_predictor.h"
#include "sim/plan/host_costs.h"
#include "sim/plan/memory/memory_plan.h"
#include "sim/plan/timed_program.h"
#include "sim/scenario/scenario.h"
#include "workloads/program/program.h"

namespace tessera {

/// Segments with the distinct kernels that they consist of.
struct TimedSegments {
  std::vector<TimedSegment> segments;  ///< parallel to Program::segments
  std::vector<TimedKernel> kernels;
};

/// Predicts every distinct kernel of `program` once and adds up its segments.
TimedSegments time_segments(const Program& program, const KernelPredictor& predictor,
                            const HostCosts& host);

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
