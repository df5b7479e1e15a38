#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/training_run_scenario.h"
#include "predictor/gpu/gpu_overlay.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A measured step beside its simulations.
struct CalibratedStep {
  TrainingRun run;
  Seconds before, after;  ///< simulated
};

struct StepCalibration {
  GpuOverlay overlay;       ///< without `tool_version`
  double log_scalar = 0;    ///< added to the log time of products
  double ratio_before = 1;  ///< geometric mean of simulated / measured
  double ratio_after = 1;
  std::vector<CalibratedStep> steps;
  std::vector<SkippedRun> skipped;  ///< rows of the GPU that cannot be simulated
  std::int64_t other_gpus = 0;      ///< rows of others
};

/// Finds the one log scalar on the arithmetic of `gpu` (in fp32 linear layers, batched products and
/// the sustained rate; in other formats products and fused attention on tensor cores; both where
/// `runs` have both) for which the geometric mean of simulated / measured over `runs` is 1, by
/// bisection to 1e-6. Steps are too few and too coarse to tell more. Each simulation runs in a
/// process of its own, `jobs` at a time. A run that cannot be simulated is skipped with the reason.
/// Throws InputError where none can be, or where no scalar between 1/20 and 20 times explains them.
StepCalibration calibrate_from_steps(const TrainingRuns& runs,
                                     const ScenarioOfTrainingRun& scenario_of, const GpuSpec& gpu,
                                     const PredictorWeights& weights, int jobs);

/// Which arithmetic measured steps are made of.
struct MeasuredArithmetic {
  bool fp32 = false;
  bool tensor_cores = false;
};

/// `overlay` with the time of products, and of attention on tensor cores, times e^`log_scalar`.
GpuOverlay with_slower_compute(GpuOverlay overlay, double log_scalar, const MeasuredArithmetic& of);

}  // namespace tessera
