#include "lab/validate/studies/rule_study.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hw/units/input_error.h"
#include "hw/units/parallel_for.h"
#include "lab/fit/fp32/spread_fit.h"
#include "lab/validate/models/model_run_scenario.h"
#include "predictor/kernel_predictor.h"
#include "sim/config/load.h"
#include "sim/plan/single_gpu_step.h"

namespace tessera {
namespace {

constexpr double kNoError = std::numeric_limits<double>::quiet_NaN();

/// A measured run, ready to be predicted with any weights.
struct MeasuredStep {
  ModelRun run;
  std::size_t gpu = 0;  ///< position in the folds
  SingleGpuStep step;

  double error_pct(const KernelPredictor& predictor) const {
    return (step.step_time(predictor) / *run.measured - 1.0) * 100;
  }
  bool covered(const KernelPredictor& predictor) const {
    const Interval interval = interval_80(step.step_time(predictor), step.spread(predictor));
    return interval.low <= *run.measured && *run.measured <= interval.high;
  }
};

/// The rules to choose from, then the same without a power limit.
std::vector<EffectRule> candidate_rules() {
  std::vector<EffectRule> rules{{ComputeRule::median, false}};
  for (const bool power_limit : {true, false})
    for (const ComputeRule compute :
         {ComputeRule::predecessor, ComputeRule::physical, ComputeRule::pooled})
      rules.push_back({compute, power_limit});
  return rules;
}
constexpr std::size_t kRulesToChooseFrom = 4;

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

class Study {
 public:
  Study(const Folds& folds, const std::vector<ModelRun>& runs, const Catalog& catalog)
      : folds_(folds) {
    for (const ModelRun& run : runs) {
      const std::size_t gpu = position_of(run.gpu);
      if (run.n_gpus != 1 || gpu == nobody() || !run.measured) continue;
      const Scenario scenario = scenario_of_run(run, PredictorForm::tessera, catalog);
      steps_.push_back({run, gpu, SingleGpuStep(scenario)});
    }
  }

  bool empty() const { return steps_.empty(); }
  std::size_t nobody() const { return folds_.size(); }
  bool power_limited(std::size_t gpu) const { return folds_.gpu(gpu).sustained_flops > 0; }

  /// Error of each GPU when it and `judge` are left out.
  ErrorByGpu left_out_errors(const EffectRule& rule, std::size_t judge) const {
    ErrorByGpu errors(folds_.size(), kNoError);
    for (std::size_t g = 0; g < folds_.size(); ++g) {
      if (g == judge) continue;
      const PredictorWeights& weights =
          judge == nobody() ? folds_.without(g) : folds_.without(g, judge);
      if (weights.trained()) errors[g] = error_of(g, weights, rule);
    }
    return errors;
  }

  /// Error of each GPU that `chosen` picks when all were measured.
  template <class Chosen>
  ErrorByGpu measured_errors(const EffectRule& rule, const Chosen& chosen) const {
    ErrorByGpu errors(folds_.size(), kNoError);
    for (std::size_t g = 0; g < folds_.size(); ++g)
      if (chosen(g)) errors[g] = error_of(g, folds_.all(), rule);
    return errors;
  }

  std::vector<StudyRow> rows(const EffectRule& rule) const {
    std::vector<StudyRow> rows;
    for (std::size_t g = 0; g < folds_.size(); ++g) {
      PredictorWeights left_out = under(rule, folds_.without(g));
      left_out.spreads = fit_spreads(folds_, rule, g);
      PredictorWeights all = under(rule, folds_.all());
      all.spreads = fit_spreads(folds_, rule, nobody());
      const auto unseen = predictor(g, left_out);
      const auto seen = predictor(g, all);
      for (const MeasuredStep& step : steps_) {
        if (step.gpu != g) continue;
        rows.push_back({step.run, step.error_pct(*unseen), step.covered(*unseen),
                        step.error_pct(*seen), step.covered(*seen)});
      }
    }
    return rows;
  }

 private:
  std::size_t position_of(const std::string& gpu) const {
    std::size_t i = 0;
    while (i < folds_.size() && folds_.gpu(i).spec.id != gpu) ++i;
    return i;
  }

  static PredictorWeights under(const EffectRule& rule, PredictorWeights weights) {
    weights.rule = rule;
    return weights;
  }

  std::unique_ptr<KernelPredictor> predictor(std::size_t gpu,
                                             const PredictorWeights& weights) const {
    return make_predictor(PredictorForm::tessera, folds_.gpu(gpu).spec, weights);
  }

  double error_of(std::size_t gpu, const PredictorWeights& weights, const EffectRule& rule) const {
    const auto own = predictor(gpu, under(rule, weights));
    double sum = 0, count = 0;
    for (const MeasuredStep& step : steps_) {
      if (step.gpu != gpu) continue;
      sum += std::abs(step.error_pct(*own));
      count += 1;
    }
    return count > 0 ? sum / count : kNoError;
  }

  const Folds& folds_;
  std::vector<MeasuredStep> steps_;
};

/// Position of the configuration with the lowest mean error among the first `count`; GPUs without
/// an error do not count.
std::size_t best_of(const std::vector<ErrorByGpu>& errors, std::size_t count) {
  const auto rank = [](const ErrorByGpu& e) {
    const double mean = mean_error(e);
    return std::isnan(mean) ? std::numeric_limits<double>::infinity() : mean;
  };
  const auto end = errors.begin() + static_cast<std::ptrdiff_t>(count);
  return static_cast<std::size_t>(std::ranges::min_element(errors.begin(), end, {}, rank) -
                                  errors.begin());
}

std::vector<ErrorByGpu> errors_of(const std::vector<RuleScore>& scores) {
  std::vector<ErrorByGpu> errors;
  for (const RuleScore& score : scores) errors.push_back(score.errors);
  return errors;
}

void study_left_out(const Study& study, const Folds& folds, RuleStudy& result) {
  const std::vector<EffectRule> rules = candidate_rules();
  const std::size_t judges = folds.size() + 1;  // the last judge is nobody: plain LOGO
  std::vector<std::vector<ErrorByGpu>> errors(judges, std::vector<ErrorByGpu>(rules.size()));
  parallel_for(judges * rules.size(), [&](std::size_t task) {
    const std::size_t judge = task / rules.size(), rule = task % rules.size();
    errors[judge][rule] = study.left_out_errors(rules[rule], judge);
  });
  const std::vector<ErrorByGpu>& plain = errors[study.nobody()];
  for (std::size_t r = 0; r < rules.size(); ++r) result.rules.push_back({rules[r], plain[r]});
  result.best_rule = best_of(plain, kRulesToChooseFrom);
  for (std::size_t judge = 0; judge < folds.size(); ++judge) {
    const auto selected = [&](std::size_t count) {
      const std::size_t chosen = best_of(errors[judge], count);
      return SelectedRule{folds.gpu(judge).spec.id, rules[chosen], plain[chosen][judge]};
    };
    if (std::isnan(plain[0][judge])) continue;
    result.selected.push_back(selected(kRulesToChooseFrom));
    result.selected_among_all.push_back(selected(rules.size()));
  }
}

void study_poolings(const Study& study, const Folds& folds, RuleStudy& result) {
  for (const double pooling : {0.0, 0.5, 1.0}) {
    EffectRule rule = result.rules[result.best_rule].rule;
    rule.session_pooling = pooling;
    result.poolings.push_back(
        {rule, study.measured_errors(rule, [&](std::size_t g) { return study.power_limited(g); })});
  }
  const std::vector<ErrorByGpu> errors = errors_of(result.poolings);
  result.best_pooling = best_of(errors, errors.size());
  for (std::size_t judge = 0; judge < folds.size(); ++judge) {
    if (!study.power_limited(judge)) continue;
    std::vector<ErrorByGpu> others = errors;
    for (ErrorByGpu& of_pooling : others) of_pooling[judge] = kNoError;
    const std::size_t chosen = best_of(others, others.size());
    result.selected_pooling.push_back(
        {folds.gpu(judge).spec.id, result.poolings[chosen].rule, errors[chosen][judge]});
  }
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

double mean_error(const std::vector<SelectedRule>& selected) {
  ErrorByGpu errors;
  for (const SelectedRule& rule : selected) errors.push_back(rule.error_pct);
  return mean_error(errors);
}

ModelErrors model_errors(const Folds& folds, const EffectRule& rule,
                         const std::vector<ModelRun>& runs, const Catalog& catalog) {
  refuse_held_out(runs, catalog);
  const Study study(folds, runs, catalog);
  return {study.left_out_errors(rule, study.nobody()),
          study.measured_errors(rule, [](std::size_t) { return true; })};
}

RuleStudy study_rules(const Folds& folds, const std::vector<ModelRun>& runs,
                      const Catalog& catalog) {
  refuse_held_out(runs, catalog);
  const Study study(folds, runs, catalog);
  if (study.empty())
    throw InputError({.where = "models",
                      .what = "no single-GPU row is of a GPU with training kernels",
                      .hint = "rules for unseen GPUs are chosen on such rows"});
  RuleStudy result;
  for (std::size_t g = 0; g < folds.size(); ++g) result.gpus.push_back(folds.gpu(g).spec.id);
  study_left_out(study, folds, result);
  study_poolings(study, folds, result);
  result.measured = study.measured_errors(result.shipped(), [](std::size_t) { return true; });
  result.rows = study.rows(result.shipped());
  return result;
}

}  // namespace tessera
