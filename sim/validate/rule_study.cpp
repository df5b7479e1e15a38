#include "sim/validate/rule_study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "hw/units/input_error.h"
#include "predictor/kernel_predictor.h"
#include "predictor/training/parallel.h"
#include "sim/plan/single_gpu_step.h"
#include "sim/validate/model_run_scenario.h"

namespace tessera {
namespace {

/// A measured step, ready to be predicted with any weights.
struct StudyRow {
  SingleGpuStep step;
  Seconds measured;
};

/// Rows by GPU, in the order of the folds.
using RowsByGpu = std::vector<std::vector<StudyRow>>;

std::vector<EffectRule> candidate_rules() {
  std::vector<EffectRule> rules{{ComputeRule::median, false}};
  for (const ComputeRule compute :
       {ComputeRule::predecessor, ComputeRule::physical, ComputeRule::pooled})
    for (const bool power_limit : {false, true}) rules.push_back({compute, power_limit});
  return rules;
}

std::size_t fold_of(const std::string& gpu, const Folds& folds) {
  std::size_t i = 0;
  while (i < folds.size() && folds.gpu(i).spec.id != gpu) ++i;
  return i;
}

void refuse_held_out(const std::vector<ModelRun>& runs, const Catalog& catalog) {
  std::vector<Problem> problems;
  for (const ModelRun& run : runs) {
    if (run.n_gpus != 1 || !held_out_from_training(load_gpu(run.gpu, catalog))) continue;
    problems.push_back({.where = run.where,
                        .what = "is a single-GPU row of " + run.gpu,
                        .hint = "A100 with 80 GB and GPUs after Ampere judge the model; they must "
                                "not choose its rules either: remove the row"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

RowsByGpu rows_by_gpu(const Folds& folds, const std::vector<ModelRun>& runs,
                      const Catalog& catalog) {
  RowsByGpu rows(folds.size());
  for (const ModelRun& run : runs) {
    const std::size_t gpu = fold_of(run.gpu, folds);
    if (run.n_gpus != 1 || gpu == folds.size() || !run.measured) continue;
    const Scenario scenario = scenario_of_run(run, PredictorForm::tessera, catalog);
    rows[gpu].push_back({SingleGpuStep(scenario), *run.measured});
  }
  return rows;
}

/// Mean absolute error of `rows` on `gpu` [%].
double error_of(const std::vector<StudyRow>& rows, const GpuSpec& gpu, PredictorWeights weights,
                const EffectRule& rule) {
  if (rows.empty()) return std::numeric_limits<double>::quiet_NaN();
  weights.rule = rule;
  const auto predictor = make_predictor(PredictorForm::tessera, gpu, weights);
  double sum = 0;
  for (const StudyRow& row : rows)
    sum += std::abs(row.step.step_time(*predictor) / row.measured - 1.0) * 100;
  return sum / static_cast<double>(rows.size());
}

/// Error of each GPU when it and `also_out` are left out of the fit; NaN for `also_out` itself.
ErrorByGpu errors_without(const Folds& folds, const RowsByGpu& rows, const EffectRule& rule,
                          std::size_t also_out) {
  ErrorByGpu errors(folds.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t g = 0; g < folds.size(); ++g) {
    if (g == also_out) continue;
    const PredictorWeights& weights =
        also_out < folds.size() ? folds.without(g, also_out) : folds.without(g);
    errors[g] = error_of(rows[g], folds.gpu(g).spec, weights, rule);
  }
  return errors;
}

/// Rule with the lowest mean error when `judge` takes no part (no GPU: plain).
std::size_t best_rule(const std::vector<ErrorByGpu>& errors_by_rule) {
  const auto best = std::ranges::min_element(errors_by_rule, {}, mean_error);
  return static_cast<std::size_t>(best - errors_by_rule.begin());
}

}  // namespace

double mean_error(const ErrorByGpu& errors) {
  double sum = 0, count = 0;
  for (const double error : errors) {
    if (std::isnan(error)) continue;
    sum += error;
    count += 1;
  }
  return sum / count;
}

double RuleStudy::selection_adjusted_error() const {
  ErrorByGpu errors;
  for (const SelectedRule& rule : selected) errors.push_back(rule.error_pct);
  return mean_error(errors);
}

RuleStudy study_rules(const Folds& folds, const std::vector<ModelRun>& runs,
                      const Catalog& catalog) {
  refuse_held_out(runs, catalog);
  const RowsByGpu rows = rows_by_gpu(folds, runs, catalog);
  const std::vector<EffectRule> rules = candidate_rules();
  const std::size_t none = folds.size();
  // errors[judge][rule]: the judge is left out of everything; judge `none` leaves nobody out.
  std::vector<std::vector<ErrorByGpu>> errors(folds.size() + 1,
                                              std::vector<ErrorByGpu>(rules.size()));
  parallel_for((none + 1) * rules.size(), [&](std::size_t task) {
    const std::size_t judge = task / rules.size(), rule = task % rules.size();
    errors[judge][rule] = errors_without(folds, rows, rules[rule], judge);
  });

  RuleStudy study{.best = best_rule(errors[none])};
  for (std::size_t r = 0; r < rules.size(); ++r)
    study.candidates.push_back({rules[r], errors[none][r]});
  for (std::size_t judge = 0; judge < folds.size(); ++judge) {
    if (rows[judge].empty()) continue;
    const std::size_t chosen = best_rule(errors[judge]);
    study.selected.push_back(
        {folds.gpu(judge).spec.id, rules[chosen], errors[none][chosen][judge]});
  }
  if (getenv("ROWS")) {
    EffectRule rule{ComputeRule::physical};
    std::size_t i = 0;
    std::vector<std::size_t> seen(folds.size());
    for (const auto& run : runs) {
      const std::size_t g = fold_of(run.gpu, folds);
      if (run.n_gpus != 1 || g == folds.size()) continue;
      const StudyRow& row = rows[g][seen[g]++];
      PredictorWeights w = folds.without(g);
      w.rule = rule;
      const double logo =
          row.step.step_time(*make_predictor(PredictorForm::tessera, folds.gpu(g).spec, w)) /
          row.measured;
      std::printf("%-16s %-10s %-16s %5ld %2ld logo %+6.1f measured", run.gpu.c_str(),
                  run.model.c_str(), run.mode.c_str(), run.seq_len, run.batch, 100 * (logo - 1));
      for (double pool : {0., .5, 1.}) {
        w = folds.all();
        w.rule = rule;
        w.rule.session_pooling = pool;
        std::printf(" %+6.1f", 100 * (row.step.step_time(*make_predictor(PredictorForm::tessera,
                                                                         folds.gpu(g).spec, w)) /
                                          row.measured -
                                      1));
      }
      std::printf("\n");
      ++i;
    }
  }
  for (std::size_t g = 0; g < folds.size(); ++g)
    study.measured.push_back(error_of(rows[g], folds.gpu(g).spec, folds.all(), rules[study.best]));
  return study;
}

}  // namespace tessera
