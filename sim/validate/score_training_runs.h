#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "predictor/weights.h"
#include "sim/validate/error_summary.h"
#include "sim/validate/ranking.h"
#include "sim/validate/training_run_scenario.h"

namespace tessera {

/// A measured step beside our simulation of it.
struct TrainingRunScore {
  TrainingRun run;      ///< of a row that the reader skipped: what SkippedRun has
  std::string profile;  ///< of the framework
  std::optional<Seconds> simulated;
  std::optional<double> error_pct;           ///< simulated against measured step time
  std::optional<double> simulated_peak_gib;  ///< as memory_error_pct
  std::optional<double> memory_error_pct;    ///< of the same metric and rank as the measured peak
  double capacity_gib = 0;                   ///< of the GPU; 0: unknown
  std::string skipped;                       ///< why it was not simulated; empty if it was
  bool failed = false;    ///< a fault of ours: the simulation ended with an error
  bool measured = false;  ///< the row has a step time
};

/// Rows of one source: who measured them.
struct SourceErrors {
  std::string source;
  int measured = 0;     ///< rows with a step time
  int expressed = 0;    ///< of those, simulated
  ErrorSummary errors;  ///< of step times
};

/// Every source counts the same, whatever the number of its rows.
struct SourceMeans {
  int sources = 0;  ///< with at least one error
  double mean_abs_error_pct = 0;
  double largest_mean_abs_error_pct = 0;
  double largest_abs_bias_pct = 0;
};

/// How often the model says that a step fits, where it does and where it does not.
struct FitVerdicts {
  int runs = 0;         ///< measured and simulated peaks
  int fit_on_card = 0;  ///< of the runs, all of which did fit
  int fit_in_less = 0;  ///< with 0.95 of the measured peak as capacity, where none fits
};

/// Peaks of one metric, of all sources or of one.
struct PeakGroup {
  std::string metric, source;  ///< source empty: all
  ErrorSummary errors;
  FitVerdicts verdicts;
};

/// What `tessera validate --runs` reports.
struct TrainingRunValidation {
  std::vector<TrainingRunScore> rows;  ///< in the order of the file
  ErrorSummary summary;                ///< of step times
  ErrorSummary memory;                 ///< of peaks
  FitVerdicts verdicts;                ///< of peaks
  std::vector<PeakGroup> peak_groups;  ///< by metric, then by source
  std::vector<ErrorGroup> groups;      ///< of step times
  std::vector<SourceErrors> sources;   ///< by name
  SourceMeans over_sources;
  Ranking ranking;  ///< of time per token
  int failed = 0;   ///< rows
};

/// Simulates every run in a process of its own, `jobs` at a time; `progress(done, all)` after each.
/// A run that cannot be expressed is listed as skipped, and so is, marked as failed, one whose
/// simulation ends with an error of ours.
TrainingRunValidation score_training_runs(
    const TrainingRuns& runs, const ScenarioOfTrainingRun& scenario_of,
    const PredictorWeights& weights, int jobs,
    const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace tessera
