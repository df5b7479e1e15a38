#include "lab/validate/models/score_models.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

double percent_off(Seconds predicted, Seconds measured) {
  return (predicted / measured - 1.0) * 100.0;
}

/// The child's answer as JSON: step time, interval, what the kernel times rest on and whose kernels
/// they are; or why there is none.
std::string simulate_run(const ModelRun& run, const ScenarioOfRun& scenario_of,
                         const PredictorWeights& weights) {
  try {
    const Scenario scenario = scenario_of(run);
    const StepReport report = run_step(scenario, weights).report;
    Json answer{{"step_s", report.step_time.value()},
                {"profile", scenario.step.framework.name},
                {"mode", name_of(prediction_basis(scenario, weights).mode)}};
    if (report.interval) {
      answer["low_s"] = report.interval->time.low.value();
      answer["high_s"] = report.interval->time.high.value();
    }
    return answer.dump();
  } catch (const InputError& error) {
    return Json{{"skipped", error.what()}}.dump();
  }
}

ModelRunScore score_of(const ModelRun& run, const std::string& answer) {
  ModelRunScore score{.run = run};
  const Json json = Json::parse(answer);
  if (json.contains("skipped")) {
    score.skipped = without_place(json["skipped"], run.where);
    return score;
  }
  score.simulated = Seconds(json["step_s"].get<double>());
  score.predictor_mode = json["mode"];
  score.profile = json["profile"];
  if (json.contains("low_s"))
    score.interval = Bounds{json["low_s"].get<double>(), json["high_s"].get<double>()};
  if (run.measured) score.error_pct = percent_off(*score.simulated, *run.measured);
  if (run.measured && run.published_prediction) {
    score.published_error_pct = percent_off(*run.published_prediction, *run.measured);
  }
  return score;
}

/// Of a row with an error.
ScoredError scored_error(const ModelRunScore& row) {
  ScoredError error{.error_pct = *row.error_pct, .covered = {}};
  if (row.interval) error.covered = row.interval->hold(row.run.measured->value());
  return error;
}

std::vector<ErrorGroup> group_errors(const std::vector<ModelRunScore>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<ScoredError>> errors;
  for (const ModelRunScore& row : rows) {
    if (!row.error_pct) continue;
    const ModelRun& run = row.run;
    const ScoredError error = scored_error(row);
    errors[{"gpu", run.gpu}].push_back(error);
    errors[{"mode", run.mode}].push_back(error);
    errors[{"model", run.model}].push_back(error);
    errors[{"parallelism", run.parallelism}].push_back(error);
    errors[{"n_gpus and mode", std::to_string(run.n_gpus) + " " + run.mode}].push_back(error);
  }
  std::vector<ErrorGroup> groups;
  for (auto& [name, values] : errors) {
    groups.push_back({name.first, name.second, summarize_scored(values)});
  }
  return groups;
}

}  // namespace

ModelValidation score_models(const std::vector<ModelRun>& runs, const ScenarioOfRun& scenario_of,
                             const PredictorWeights& weights, int jobs) {
  std::vector<std::function<std::string()>> tasks;
  for (const ModelRun& run : runs) {
    tasks.push_back([&] {
      if (!run.fault.empty()) return Json{{"skipped", run.fault}}.dump();
      return simulate_run(run, scenario_of, weights);
    });
  }
  const std::vector<std::string> answers = run_forked_all(tasks, jobs);
  ModelValidation validation;
  std::vector<ScoredError> errors;
  std::vector<double> published_errors;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ModelRunScore score = score_of(runs[i], answers[i]);
    if (score.error_pct) errors.push_back(scored_error(score));
    if (score.published_error_pct) published_errors.push_back(*score.published_error_pct);
    if (!score.skipped.empty())
      validation.skipped.push_back({line_name(runs[i].where), runs[i].where, score.skipped});
    validation.rows.push_back(score);
  }
  validation.summary = summarize_scored(errors);
  validation.published = summarize_errors(std::move(published_errors));
  validation.groups = group_errors(validation.rows);
  return validation;
}

}  // namespace tessera
