#include "sim/validate/score_training_runs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "sim/validate/peak_of_run.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::size_t kBatchPerJob = 8;

double in_gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGiB;
}

/// The child's answer as JSON: profile, step_s and peak_gib, or the reason why there is none.
std::string simulate_run(const TrainingRun& run, const ScenarioOfTrainingRun& scenario_of,
                         const PredictorWeights& weights) {
  try {
    const Scenario scenario = scenario_of(run);
    Json answer{{"profile", scenario.step.framework.name}};
    if (run.peak_memory_gib) answer["peak_gib"] = in_gib(peak_of_training_run(run, scenario));
    if (run.step_time || !run.peak_memory_gib)
      answer["step_s"] = simulate(plan_step(scenario, weights)).step_time.value();
    return answer.dump();
  } catch (const InputError& error) {
    return Json{{"skipped", error.what()}}.dump();
  }
}

TrainingRunScore score_of(const TrainingRun& run, const std::string& answer) {
  TrainingRunScore score{.run = run};
  const Json json = Json::parse(answer);
  if (json.contains("skipped")) {
    score.skipped = json["skipped"];
    return score;
  }
  score.profile = json["profile"];
  if (json.contains("step_s")) score.simulated = Seconds(json["step_s"].get<double>());
  if (json.contains("peak_gib")) score.simulated_peak_gib = json["peak_gib"].get<double>();
  if (run.step_time) score.error_pct = 100 * (*score.simulated / *run.step_time - 1);
  if (run.peak_memory_gib)
    score.memory_error_pct = 100 * (*score.simulated_peak_gib / *run.peak_memory_gib - 1);
  return score;
}

/// "one GPU", "tp", "tp+dp", ...
std::string parallelism_of(const ParallelLayout& layout) {
  std::string text;
  const auto add = [&](int size, const char* name) {
    if (size > 1) text += (text.empty() ? "" : "+") + std::string(name);
  };
  add(layout.tensor, "tp");
  add(layout.pipeline, "pp");
  add(layout.data, "dp");
  return text.empty() ? "one GPU" : text;
}

std::string size_of(const TrainingRun& run) {
  if (run.n_gpus == 1) return "1 GPU";
  if (run.n_gpus <= run.gpus_per_node) return "2 to 8 GPUs, one node";
  return run.n_gpus <= 64 ? "up to 64 GPUs" : "more than 64 GPUs";
}

std::vector<ErrorGroup> group_errors(const std::vector<TrainingRunScore>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const TrainingRunScore& row : rows) {
    if (!row.error_pct) continue;
    const TrainingRun& run = row.run;
    errors[{"gpu", run.gpu}].push_back(*row.error_pct);
    errors[{"framework", run.framework}].push_back(*row.error_pct);
    errors[{"precision", run.precision}].push_back(*row.error_pct);
    errors[{"parallelism", parallelism_of(run.layout)}].push_back(*row.error_pct);
    errors[{"size", size_of(run)}].push_back(*row.error_pct);
  }
  std::vector<ErrorGroup> groups;
  for (auto& [name, values] : errors)
    groups.push_back({name.first, name.second, summarize_errors(std::move(values))});
  return groups;
}

/// Rows of both lists in the order of the file.
std::vector<TrainingRunScore> in_file_order(std::vector<TrainingRunScore> scores,
                                            const std::vector<SkippedRun>& skipped) {
  for (const SkippedRun& row : skipped) {
    TrainingRunScore score;
    score.run.where = row.where;
    score.run.id = row.id;
    score.run.gpu = row.gpu;
    score.skipped = row.reason;
    scores.push_back(std::move(score));
  }
  const auto line = [](const TrainingRunScore& score) {
    return std::stoll(score.run.where.substr(score.run.where.rfind(':') + 1));
  };
  std::ranges::stable_sort(scores, {}, line);
  return scores;
}

}  // namespace

TrainingRunValidation score_training_runs(
    const TrainingRuns& runs, const ScenarioOfTrainingRun& scenario_of,
    const PredictorWeights& weights, int jobs,
    const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<TrainingRunScore> scores;
  const std::size_t batch = kBatchPerJob * static_cast<std::size_t>(jobs);
  for (std::size_t begin = 0; begin < runs.runs.size(); begin += batch) {
    const std::size_t end = std::min(begin + batch, runs.runs.size());
    std::vector<std::function<std::string()>> tasks;
    for (std::size_t i = begin; i < end; ++i)
      tasks.push_back([&, i] { return simulate_run(runs.runs[i], scenario_of, weights); });
    const std::vector<std::string> answers = run_forked_all(tasks, jobs);
    for (std::size_t i = begin; i < end; ++i)
      scores.push_back(score_of(runs.runs[i], answers[i - begin]));
    progress(end, runs.runs.size());
  }
  TrainingRunValidation validation;
  validation.rows = in_file_order(std::move(scores), runs.skipped);
  std::vector<double> errors;
  std::vector<double> memory_errors;
  for (const TrainingRunScore& row : validation.rows) {
    if (row.error_pct) errors.push_back(*row.error_pct);
    if (row.memory_error_pct) memory_errors.push_back(*row.memory_error_pct);
  }
  validation.summary = summarize_errors(std::move(errors));
  validation.memory = summarize_errors(std::move(memory_errors));
  validation.groups = group_errors(validation.rows);
  return validation;
}

}  // namespace tessera
