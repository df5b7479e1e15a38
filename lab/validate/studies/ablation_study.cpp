#include "lab/validate/studies/ablation_study.h"

#include <algorithm>
#include <cmath>

#include "hw/units/formatted.h"
#include "lab/fit/fp32/logo.h"

namespace tessera {
namespace {

/// Mean over the GPUs of one form's errors on one operator, `but` some GPUs.
double mean_of(const std::vector<LogoScore>& scores, const std::string& form, const std::string& op,
               const std::vector<std::string>& but = {}) {
  ErrorByGpu errors;
  for (const LogoScore& score : scores) {
    const bool left_out = std::ranges::find(but, score.gpu) != but.end();
    if (score.form == form && score.op == op && !left_out)
      errors.push_back(score.mean_abs_error_pct);
  }
  return mean_error(errors);
}

AblationScore score_of(const std::string& name, const TrainingSet& set, LeftOutIngredient without,
                       const EffectRule& rule, const std::vector<ModelRun>& runs,
                       const Catalog& catalog) {
  const Folds folds(set.gpus, FoldDepth::one, without);
  const auto scores = leave_one_gpu_out(folds, {.rule = rule, .baselines = false});
  const ModelErrors models = model_errors(folds, rule, runs, catalog);
  return {.name = name,
          .linear = mean_of(scores, "tessera", "linear"),
          .linear_sound = mean_of(scores, "tessera", "linear", set.anomalous_linear()),
          .bmm = mean_of(scores, "tessera", "bmm"),
          .models_left_out = mean_error(models.left_out),
          .models_measured = mean_error(models.measured)};
}

std::string number(double value) {
  return std::isnan(value) ? "-" : formatted("%.1f", value);
}

}  // namespace

std::vector<AblationScore> study_ablations(const TrainingSet& set,
                                           const std::vector<ModelRun>& runs,
                                           const Catalog& catalog, const EffectRule& rule) {
  std::vector<AblationScore> scores{score_of("full model", set, {}, rule, runs, catalog)};
  for (const Ingredient ingredient : kIngredients)
    scores.push_back(score_of("without " + std::string(name_of(ingredient)), set, ingredient, rule,
                              runs, catalog));
  EffectRule unlimited = rule;
  unlimited.power_limit = false;
  scores.push_back(
      score_of("without power limit of unseen GPUs", set, {}, unlimited, runs, catalog));
  EffectRule own_sessions = rule;
  own_sessions.session_pooling = 0;
  scores.push_back(
      score_of("without pooling of power sessions", set, {}, own_sessions, runs, catalog));
  return scores;
}

std::vector<SeedScore> study_seeds(const TrainingSet& set, const EffectRule& rule) {
  const Folds folds(set.gpus, FoldDepth::one);
  std::vector<SeedScore> seeds;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto scores = leave_one_gpu_out(folds, {.seed = seed, .rule = rule});
    for (const char* form : {"neusight", "free_mlp"})
      seeds.push_back({seed, form, mean_of(scores, form, "linear"), mean_of(scores, form, "bmm")});
  }
  return seeds;
}

std::string ablation_table(const std::vector<AblationScore>& ablations,
                           const std::vector<SeedScore>& seeds) {
  std::string text = text_line("%-45s %8s %14s %8s %17s %17s", "mean |error| %", "linear",
                               "linear, sound", "bmm", "models, left out", "models, measured");
  for (const AblationScore& score : ablations)
    text +=
        text_line("%-45s %8s %14s %8s %17s %17s", score.name.c_str(), number(score.linear).c_str(),
                  number(score.linear_sound).c_str(), number(score.bmm).c_str(),
                  number(score.models_left_out).c_str(), number(score.models_measured).c_str());
  text +=
      "linear, bmm: kernels of GPUs that were left out; sound: without GPUs whose linear session "
      "is anomalous; models: single-GPU runs\n\n";
  text += text_line("%-6s %-10s %8s %8s", "seed", "form", "linear", "bmm");
  for (const SeedScore& seed : seeds)
    text += text_line("%-6llu %-10s %8s %8s", static_cast<unsigned long long>(seed.seed),
                      seed.form.c_str(), number(seed.linear).c_str(), number(seed.bmm).c_str());
  return text + "the forms tessera, regression and roofline have no randomness\n";
}

}  // namespace tessera
