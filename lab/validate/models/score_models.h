#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/validate/error_summary.h"
#include "lab/validate/models/model_runs.h"
#include "predictor/kernel_predictor.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A measured run beside our simulation of it.
struct ModelRunScore {
  ModelRun run;
  std::optional<Seconds> simulated;
  std::optional<Bounds> interval;             ///< of simulated; empty where it is not known
  std::optional<double> error_pct;            ///< simulated against measured
  std::optional<double> published_error_pct;  ///< published prediction against measured
  std::string predictor_mode;  ///< "zero-shot", "calibrated", ...; empty if it was not simulated
  std::string profile;         ///< of the framework; empty if it was not simulated
  std::string skipped;         ///< why it was not simulated; empty if it was
};

/// What `tessera validate --models` and `tessera reproduce` report.
struct ModelValidation {
  std::vector<ModelRunScore> rows;  ///< in the order of the file
  ErrorSummary summary;
  ErrorSummary published;  ///< of the published predictions, over the rows that have one
  std::vector<ErrorGroup> groups;
  std::vector<SkippedRow> skipped;  ///< in the order of the file
};

/// Builds the scenario that reproduces a run; throws InputError where it can't be expressed.
using ScenarioOfRun = std::function<Scenario(const ModelRun&)>;

/// Simulates every run in a process of its own, `jobs` at a time. A run that cannot be expressed or
/// simulated is listed as skipped.
ModelValidation score_models(const std::vector<ModelRun>& runs, const ScenarioOfRun& scenario_of,
                             const PredictorWeights& weights, int jobs);

}  // namespace tessera
