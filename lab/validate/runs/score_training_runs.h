#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/validate/bad_rows.h"
#include "lab/validate/error_summary.h"
#include "lab/validate/runs/training_run_scenario.h"
#include "lab/validate/studies/ranking.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// A measured step beside our simulation of it.
struct TrainingRunScore {
  TrainingRun run;      ///< of a row that the reader skipped: what SkippedRun has
  std::string profile;  ///< of the framework
  std::optional<Seconds> simulated;
  std::optional<Bounds> interval;            ///< of simulated; empty where it is not known
  std::optional<double> error_pct;           ///< simulated against measured step time
  std::optional<double> simulated_peak_gib;  ///< as memory_error_pct
  std::optional<double> memory_error_pct;    ///< of the same metric and rank as the measured peak
  bool experts = false;                      ///< the model has some
  std::optional<double> mfu;           ///< measured, of a GPU's dense peak in the step's format
  std::optional<double> fabric_share;  ///< measured all-reduce over the one the cluster promises
  std::optional<bool> fits;            ///< empty where it was not simulated
  std::optional<double> device_gib;    ///< that the fullest GPU needs, context and NCCL included
  std::string skipped;                 ///< why it was not simulated; empty if it was
  bool failed = false;                 ///< a fault of ours: the simulation ended with an error
  bool measured = false;               ///< the row has a step time
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
  int ran = 0, ran_found = 0;                      ///< jobs that ran; of those, said to fit
  int out_of_memory = 0, out_of_memory_found = 0;  ///< jobs that did not; of those, said not to fit
  int peaks = 0;                                   ///< measured and simulated
  int fit_in_less = 0;  ///< of the peaks, with 0.95 of the measured one as capacity: none fits

  /// Mean of both shares; empty where one of the two was not measured.
  std::optional<double> balanced_accuracy_pct() const;
};

/// Rows of one model.
struct VerdictGroup {
  std::string model;
  FitVerdicts verdicts;
};

/// Peaks of one metric, of all sources or of one.
struct PeakGroup {
  std::string metric, source;  ///< source empty: all
  ErrorSummary errors;
  FitVerdicts verdicts;
};

/// What `tessera validate --runs` reports.
struct TrainingRunValidation {
  std::vector<TrainingRunScore> rows;        ///< in the order of the file
  ErrorSummary summary;                      ///< of step times
  ErrorSummary memory;                       ///< of peaks
  FitVerdicts verdicts;                      ///< of all rows that say whether the job ran
  std::vector<VerdictGroup> verdict_groups;  ///< by model, where some job was out of memory
  std::vector<PeakGroup> peak_groups;        ///< by metric, then by source
  std::vector<ErrorGroup> groups;            ///< of step times
  std::vector<SourceErrors> sources;         ///< by name
  SourceMeans over_sources;
  Ranking ranking;                  ///< of time per token
  int failed = 0;                   ///< rows
  std::vector<SkippedRow> skipped;  ///< in the order of the file
  AppliedCorrections corrections;
};

/// Simulates every run in a process of its own, `jobs` at a time; `progress(done, all)` after each.
/// A run that cannot be expressed is listed as skipped, and so is, marked as failed, one whose
/// simulation ends with an error of ours.
TrainingRunValidation score_training_runs(
    const TrainingRuns& runs, const ScenarioOfTrainingRun& scenario_of,
    const PredictorWeights& weights, int jobs,
    const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace tessera
