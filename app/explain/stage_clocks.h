#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "predictor/weights/weights.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A pipeline stage under a clock of its own.
struct StageClock {
  double clock = 1;        ///< share of the clock, in (0, 1]
  double slowed = 0;       ///< share of the kernel time that runs at it, in [0, 1]
  double kernels_s = 0;    ///< of a GPU at the full clock
  double energy_j = 0;     ///< of the stage's GPUs in a step, at the full clock
  double scheduled_j = 0;  ///< at `clock`
};

/// What a step loses and its energy gains where stages that wait run slower.
struct ClockPlan {
  Seconds step, scheduled_step;
  int spared = 0;  ///< micro-batches that keep the full clock while the pipeline fills and drains
  std::vector<StageClock> stages;

  double energy_j() const;
  double scheduled_j() const;
};

/// Called after each stage whose clock was searched: how many of all searches have ended.
using OnClock = std::function<void(std::size_t done, std::size_t all)>;

/// The slowest clocks by stage with which the step takes at most 1 + `tolerance` of its time, stage
/// by stage, the one that computes least first: once for whole stages, and once for what runs
/// between the filling and the draining of the pipeline alone, whichever saves more. Each candidate
/// is simulated, kernels at 1 / clock of their time: more than those that memory limits take, and
/// as if clocks changed at once (Chung et al., "Perseus", SOSP 2024). Energy of a kernel falls with
/// the voltage (hw/power.h); idle power stays. Throws InputError without a pipeline, without a
/// known board power, and for jobs whose GPUs differ already.
ClockPlan plan_clocks(const Scenario& scenario, const PredictorWeights& weights, double tolerance,
                      const OnClock& on_clock = {});

std::string table_text(const ClockPlan& plan);
std::string json_text(const ClockPlan& plan, const std::string& version);

}  // namespace tessera
