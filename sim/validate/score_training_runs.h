#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "predictor/weights.h"
#include "sim/validate/error_summary.h"
#include "sim/validate/training_run_scenario.h"

namespace tessera {

/// A measured step beside our simulation of it.
struct TrainingRunScore {
  TrainingRun run;      ///< of a skipped row: `where`, `id` and `gpu` alone
  std::string profile;  ///< of the framework
  std::optional<Seconds> simulated;
  std::optional<double> error_pct;           ///< simulated against measured step time
  std::optional<double> simulated_peak_gib;  ///< allocated, highest of all ranks
  std::optional<double> memory_error_pct;    ///< against a peak of any metric
  std::string skipped;                       ///< why it was not simulated; empty if it was
};

/// What `tessera validate --runs` reports.
struct TrainingRunValidation {
  std::vector<TrainingRunScore> rows;  ///< in the order of the file
  ErrorSummary summary;                ///< of step times
  ErrorSummary memory;                 ///< of peaks
  std::vector<ErrorGroup> groups;      ///< of step times
};

/// Simulates every run in a process of its own, `jobs` at a time; `progress(done, all)` after each
/// batch. A run that cannot be expressed or simulated is listed as skipped.
TrainingRunValidation score_training_runs(
    const TrainingRuns& runs, const ScenarioOfTrainingRun& scenario_of,
    const PredictorWeights& weights, int jobs,
    const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace tessera
