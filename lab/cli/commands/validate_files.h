#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/shell/exit_code.h"
#include "lab/validate/models/score_models.h"
#include "lab/validate/runs/score_training_runs.h"

namespace tessera {

/// Which measurements are simulated, and how.
struct ValidateOptions {
  std::string models_file;
  std::string operators_file;
  std::vector<std::string> runs_files;  ///< judged together
  std::vector<std::string> only;
  std::vector<std::string> overlay_files;
  std::string corrections_file;  ///< empty: the one beside the runs
  bool correct = true;
  std::vector<std::string> ignored;  ///< columns
  bool strict = false;               ///< a row that is skipped ends the run
  int jobs = 0;                      ///< 0: as many as there are processors
  std::string collectives_file;
  std::string power_caps_file;
  std::string node_power_file;
  std::string long_runs_folder;
  std::string calibrate_on;
  std::string leave_out;
  std::string constants;
  std::string format;
  std::string report_file;
  std::string form;
  bool memory_alone = false;  ///< of RUNS: peaks and verdicts, no time
  bool summary = false;       ///< of RUNS: no line per row
  bool by_layout = false;     ///< of RUNS: constants and ranks beside the simulation
  std::string baseline_data;  ///< folder of measured kernels; empty: no baselines
  std::string picture_file;   ///< of the baselines
  std::string scenarios;      ///< hash or yaml: what rows become, in place of simulations
  std::optional<double> tolerance_pct;
};

/// Where no row could be compared, nothing speaks for the model.
bool misses(const ErrorSummary& errors, double tolerance_pct);

TrainingRunValidation score_runs(const ValidateOptions& options);
ModelValidation score_runs_of_models(const ValidateOptions& options);

/// Puts baselines trained on `baseline_data` beside our simulations of the models, prints the table
/// and writes the picture.
ExitCode run_baselines(const ValidateOptions& options);

/// Simulates the one file that the options name and prints the errors.
ExitCode run_validate(const ValidateOptions& options);

}  // namespace tessera
