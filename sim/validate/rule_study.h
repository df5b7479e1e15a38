#pragma once

#include <string>
#include <vector>

#include "predictor/effect_rule.h"
#include "predictor/training/folds.h"
#include "sim/config/catalog.h"
#include "sim/validate/model_runs.h"

namespace tessera {

/// Mean absolute error [%] of the single-GPU model rows of each GPU of the folds, in their order;
/// NaN where a GPU has no row.
using ErrorByGpu = std::vector<double>;

/// Mean over the GPUs that have rows.
double mean_error(const ErrorByGpu& errors);

/// A rule for unseen GPUs and what it reaches on whole models of GPUs that were left out.
struct RuleScore {
  EffectRule rule;
  ErrorByGpu leave_one_out;  ///< kernels of that GPU unseen, rule given
};

/// One GPU left out completely: the rule chosen on the other GPUs, then this GPU's models
/// predicted.
struct SelectedRule {
  std::string gpu;
  EffectRule rule;
  double error_pct = 0;
};

/// Which rule predicts GPUs that were never measured best, and how much of that is selection.
struct RuleStudy {
  std::vector<RuleScore> candidates;
  std::size_t best = 0;                ///< lowest plain mean: the rule that is shipped
  std::vector<SelectedRule> selected;  ///< per GPU with rows: selection-adjusted
  ErrorByGpu measured;  ///< all GPUs trained on, shipped rule: new models on measured GPUs

  double plain_error() const { return mean_error(candidates[best].leave_one_out); }
  double selection_adjusted_error() const;
};

/// Chooses among the candidate rules by leave-one-GPU-out on single-GPU rows of `runs`. Rows of
/// several GPUs are not looked at. Throws InputError where a single-GPU row is of a GPU that the
/// model must never see (`held_out_from_training`). No parameter is fitted to these rows.
RuleStudy study_rules(const Folds& folds, const std::vector<ModelRun>& runs,
                      const Catalog& catalog);

}  // namespace tessera
