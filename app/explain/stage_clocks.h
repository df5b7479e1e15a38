#pragma once

#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "predictor/weights/weights.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A pipeline stage under a clock of its own.
struct StageClock {
  double clock = 1;        ///< share of the clock, in (0, 1]
  double kernels_s = 0;    ///< of a GPU at the full clock
  double energy_j = 0;     ///< of the stage's GPUs in a step, at the full clock
  double scheduled_j = 0;  ///< at `clock`
};

/// What a step loses and its energy gains where stages that wait run slower.
struct ClockPlan {
  Seconds step, scheduled_step;
  std::vector<StageClock> stages;

  double energy_j() const;
  double scheduled_j() const;
};

/// The slowest clocks by stage with which the step takes at most 1 + `tolerance` of its time, stage
/// by stage, the one that computes least first. Each candidate is simulated, all kernels of a stage
/// at 1 / clock of their time: more than those that memory limits take. Energy of a kernel falls
/// with the voltage (hw/power.h); idle power stays. Throws InputError without a pipeline, without a
/// known board power, and for jobs whose GPUs differ already.
ClockPlan plan_clocks(const Scenario& scenario, const PredictorWeights& weights, double tolerance);

std::string table_text(const ClockPlan& plan);
std::string json_text(const ClockPlan& plan, const std::string& version);

}  // namespace tessera
