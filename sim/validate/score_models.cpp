#include "sim/validate/score_models.h"

#include <charconv>
#include <exception>
#include <map>
#include <string_view>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

constexpr char kSimulated = '=';  // first byte of a child's answer: a step time follows
constexpr char kSkipped = '!';    // ... or the reason why there is none

double percent_off(Seconds predicted, Seconds measured) {
  return (predicted / measured - 1.0) * 100.0;
}

/// The child's answer: a step time as shortest round-trip text and what the kernel times rest on,
/// or a reason.
std::string simulate_run(const ModelRun& run, const ScenarioOfRun& scenario_of,
                         const PredictorWeights& weights) {
  try {
    const Scenario scenario = scenario_of(run);
    const Timeline timeline = simulate(plan_step(scenario, weights));
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, timeline.step_time.value()).ptr;
    const std::string_view mode = name_of(prediction_basis(scenario, weights).mode);
    return kSimulated + std::string(digits, end) + ' ' + std::string(mode);
  } catch (const InputError& error) {
    return kSkipped + std::string(error.what());
  }
}

ModelRunScore score_of(const ModelRun& run, const std::string& answer) {
  ModelRunScore score{.run = run};
  if (answer.front() == kSkipped) {
    score.skipped = answer.substr(1);
    return score;
  }
  double seconds = 0;
  std::from_chars(answer.data() + 1, answer.data() + answer.size(), seconds);
  score.simulated = Seconds(seconds);
  score.predictor_mode = answer.substr(answer.find(' ') + 1);
  if (run.measured) score.error_pct = percent_off(*score.simulated, *run.measured);
  if (run.measured && run.published_prediction) {
    score.published_error_pct = percent_off(*run.published_prediction, *run.measured);
  }
  return score;
}

std::vector<ErrorGroup> group_errors(const std::vector<ModelRunScore>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const ModelRunScore& row : rows) {
    if (!row.error_pct) continue;
    const ModelRun& run = row.run;
    errors[{"gpu", run.gpu}].push_back(*row.error_pct);
    errors[{"mode", run.mode}].push_back(*row.error_pct);
    errors[{"model", run.model}].push_back(*row.error_pct);
    errors[{"parallelism", run.parallelism}].push_back(*row.error_pct);
    errors[{"n_gpus and mode", std::to_string(run.n_gpus) + " " + run.mode}].push_back(
        *row.error_pct);
  }
  std::vector<ErrorGroup> groups;
  for (auto& [name, values] : errors) {
    groups.push_back({name.first, name.second, summarize_errors(std::move(values))});
  }
  return groups;
}

}  // namespace

ModelValidation score_models(const std::vector<ModelRun>& runs, const ScenarioOfRun& scenario_of,
                             const PredictorWeights& weights, int jobs) {
  std::vector<std::function<std::string()>> tasks;
  for (const ModelRun& run : runs) {
    tasks.push_back([&] { return simulate_run(run, scenario_of, weights); });
  }
  const std::vector<std::string> answers = run_forked_all(tasks, jobs);
  ModelValidation validation;
  std::vector<double> errors;
  std::vector<double> published_errors;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ModelRunScore score = score_of(runs[i], answers[i]);
    if (score.error_pct) errors.push_back(*score.error_pct);
    if (score.published_error_pct) published_errors.push_back(*score.published_error_pct);
    validation.rows.push_back(score);
  }
  validation.summary = summarize_errors(std::move(errors));
  validation.published = summarize_errors(std::move(published_errors));
  validation.groups = group_errors(validation.rows);
  return validation;
}

}  // namespace tessera
