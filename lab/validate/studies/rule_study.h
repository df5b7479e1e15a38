#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/fit/fp32/folds.h"
#include "lab/validate/models/model_runs.h"
#include "predictor/gpu/effect_rule.h"
#include "sim/config/catalog.h"

namespace tessera {

/// Mean absolute error [%] of the single-GPU model rows of each GPU of the folds, in their order;
/// NaN where a GPU has no row or takes no part.
using ErrorByGpu = std::vector<double>;

/// Mean over the GPUs that have an error.
double mean_error(const ErrorByGpu& errors);

/// A configuration with what it reaches.
struct RuleScore {
  EffectRule rule;
  ErrorByGpu errors;
};

/// One GPU left out completely: the rule chosen on the other GPUs, then this GPU's models
/// predicted.
struct SelectedRule {
  std::string gpu;
  EffectRule rule;
  double error_pct = 0;
};

/// One measured run, by the shipped rule.
struct StudyRow {
  ModelRun run;
  double left_out_error_pct = 0;  ///< nothing measured on its GPU
  bool left_out_covered = false;  ///< measured time within the 80 % interval
  double measured_error_pct = 0;  ///< kernels of its GPU measured
  bool measured_covered = false;
};

double mean_error(const std::vector<SelectedRule>& selected);

/// Which rule predicts GPUs that were never measured best, and how much of that is selection.
struct RuleStudy {
  std::vector<std::string> gpus;

  std::vector<RuleScore> rules;  ///< errors on GPUs that were left out (plain LOGO)
  std::size_t best_rule = 0;     ///< lowest mean
  /// Per GPU: selection-adjusted LOGO. With one of the power-limited cards as judge the other one
  /// is predicted without a limit by any rule, so a choice that includes rules without a limit
  /// (`selected_among_all`) is blind to it.
  std::vector<SelectedRule> selected, selected_among_all;

  std::vector<RuleScore> poolings;  ///< best rule; errors on power-limited GPUs that were measured
  std::size_t best_pooling = 0;
  std::vector<SelectedRule> selected_pooling;  ///< chosen on the other power-limited GPUs

  ErrorByGpu measured;         ///< new models on measured GPUs, shipped rule
  std::vector<StudyRow> rows;  ///< shipped rule

  const EffectRule& shipped() const { return poolings[best_pooling].rule; }
  double plain_error() const { return mean_error(rules[best_rule].errors); }
};

/// Errors of whole models under one rule.
struct ModelErrors {
  ErrorByGpu left_out;  ///< nothing measured on that GPU
  ErrorByGpu measured;  ///< its kernels measured
};
ModelErrors model_errors(const Folds& folds, const EffectRule& rule,
                         const std::vector<ModelRun>& runs, const Catalog& catalog);

/// Chooses among the rules by leave-one-GPU-out on the single-GPU rows of `runs`; rows of several
/// GPUs are not looked at. `folds` must leave out two GPUs. No parameter is fitted to model rows.
/// Throws InputError where a single-GPU row is of a GPU that the model must never see
/// (`held_out_from_training`), or no row is of a trained GPU.
RuleStudy study_rules(const Folds& folds, const std::vector<ModelRun>& runs,
                      const Catalog& catalog);

}  // namespace tessera
