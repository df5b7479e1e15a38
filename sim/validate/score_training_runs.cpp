#include "sim/validate/score_training_runs.h"

#include <algorithm>
#include <cmath>
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

double in_gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGiB;
}

/// The child's answer as JSON: profile, step_s and peak_gib, or the reason why there is none.
std::string simulate_run(const TrainingRun& run, const ScenarioOfTrainingRun& scenario_of,
                         const PredictorWeights& weights) {
  try {
    const Scenario scenario = scenario_of(run);
    Json answer{{"profile", scenario.step.framework.name}};
    answer["capacity_gib"] = in_gib(scenario.cluster.node.gpu.memory);
    if (run.peak_memory_gib) answer["peak_gib"] = in_gib(peak_of_training_run(run, scenario));
    if (run.step_time || !run.peak_memory_gib)
      answer["step_s"] = simulate(plan_step(scenario, weights)).step_time.value();
    return answer.dump();
  } catch (const InputError& error) {
    return Json{{"skipped", error.what()}}.dump();
  }
}

TrainingRunScore score_of(const TrainingRun& run, const ForkedOutcome& outcome) {
  TrainingRunScore score{.run = run, .measured = run.step_time.has_value()};
  if (!outcome.error.empty()) {
    score.skipped = "the simulation failed: " + outcome.error;
    score.failed = true;
    return score;
  }
  const Json json = Json::parse(outcome.result);
  if (json.contains("skipped")) {
    score.skipped = json["skipped"];
    return score;
  }
  score.profile = json["profile"];
  if (json.contains("step_s")) score.simulated = Seconds(json["step_s"].get<double>());
  score.capacity_gib = json["capacity_gib"];
  if (json.contains("peak_gib")) score.simulated_peak_gib = json["peak_gib"].get<double>();
  if (run.step_time) score.error_pct = 100 * (*score.simulated / *run.step_time - 1);
  if (run.peak_memory_gib)
    score.memory_error_pct = 100 * (*score.simulated_peak_gib / *run.peak_memory_gib - 1);
  return score;
}

std::string source_name(const TrainingRun& run) {
  return run.source.empty() ? "(no source)" : run.source;
}

void judge(const TrainingRunScore& row, FitVerdicts& verdicts) {
  constexpr double kLess = 0.95;
  ++verdicts.runs;
  verdicts.fit_on_card += *row.simulated_peak_gib <= row.capacity_gib ? 1 : 0;
  verdicts.fit_in_less += *row.simulated_peak_gib <= kLess * *row.run.peak_memory_gib ? 1 : 0;
}

std::vector<PeakGroup> group_peaks(const std::vector<TrainingRunScore>& rows) {
  std::map<std::pair<std::string, std::string>, PeakGroup> groups;
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const TrainingRunScore& row : rows) {
    if (!row.memory_error_pct) continue;
    for (const std::string& source : {std::string(), source_name(row.run)}) {
      const std::pair key{row.run.memory_metric, source};
      errors[key].push_back(*row.memory_error_pct);
      judge(row, groups[key].verdicts);
    }
  }
  std::vector<PeakGroup> list;
  for (auto& [key, group] : groups) {
    group.metric = key.first;
    group.source = key.second;
    group.errors = summarize_errors(std::move(errors[key]));
    list.push_back(std::move(group));
  }
  return list;
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
    errors[{"source", source_name(run)}].push_back(*row.error_pct);
  }
  std::vector<ErrorGroup> groups;
  for (auto& [name, values] : errors)
    groups.push_back({name.first, name.second, summarize_errors(std::move(values))});
  return groups;
}

std::vector<SourceErrors> source_errors(const std::vector<TrainingRunScore>& rows) {
  std::map<std::string, SourceErrors> sources;
  std::map<std::string, std::vector<double>> errors;
  for (const TrainingRunScore& row : rows) {
    const std::string name = source_name(row.run);
    SourceErrors& source = sources[name];
    source.measured += row.measured ? 1 : 0;
    if (!row.error_pct) continue;
    ++source.expressed;
    errors[name].push_back(*row.error_pct);
  }
  std::vector<SourceErrors> list;
  for (auto& [name, source] : sources) {
    source.source = name;
    source.errors = summarize_errors(std::move(errors[name]));
    list.push_back(std::move(source));
  }
  return list;
}

SourceMeans means_of(const std::vector<SourceErrors>& sources) {
  SourceMeans means;
  for (const SourceErrors& source : sources) {
    if (source.errors.n == 0) continue;
    ++means.sources;
    means.mean_abs_error_pct += source.errors.mean_abs_error_pct;
    means.largest_mean_abs_error_pct =
        std::max(means.largest_mean_abs_error_pct, source.errors.mean_abs_error_pct);
    means.largest_abs_bias_pct =
        std::max(means.largest_abs_bias_pct, std::abs(source.errors.bias_pct));
  }
  if (means.sources > 0) means.mean_abs_error_pct /= means.sources;
  return means;
}

Ranking rank_runs(const std::vector<TrainingRunScore>& rows) {
  std::vector<RankedRun> runs;
  for (const TrainingRunScore& row : rows) {
    if (!row.error_pct) continue;
    const TrainingRun& run = row.run;
    const std::int64_t length = std::max<std::int64_t>(1, run.sequence_length);  // 1: images
    const double tokens = static_cast<double>(run.global_batch * length);
    runs.push_back({.source = source_name(run),
                    .model = run.model,
                    .n_gpus = run.n_gpus,
                    .id = run.id,
                    .measured = run.step_time->value() / tokens,
                    .simulated = row.simulated->value() / tokens});
  }
  return rank_layouts(runs);
}

TrainingRunScore score_of(const SkippedRun& row) {
  TrainingRunScore score{.skipped = row.reason, .measured = row.measured};
  score.run.where = row.where;
  score.run.id = row.id;
  score.run.gpu = row.gpu;
  score.run.n_gpus = 0;
  score.run.source = row.source;
  score.run.framework = row.framework;
  score.run.precision = row.precision;
  score.run.model = row.model;
  return score;
}

/// Rows of both lists in the order of the file.
std::vector<TrainingRunScore> in_file_order(std::vector<TrainingRunScore> scores,
                                            const std::vector<SkippedRun>& skipped) {
  for (const SkippedRun& row : skipped) scores.push_back(score_of(row));
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
  std::vector<std::function<std::string()>> tasks;
  for (const TrainingRun& run : runs.runs)
    tasks.push_back([&] { return simulate_run(run, scenario_of, weights); });
  const std::vector<ForkedOutcome> outcomes =
      run_forked_each(tasks, jobs, [&](std::size_t done) { progress(done, runs.runs.size()); });
  std::vector<TrainingRunScore> scores;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    scores.push_back(score_of(runs.runs[i], outcomes[i]));
  TrainingRunValidation validation;
  validation.rows = in_file_order(std::move(scores), runs.skipped);
  std::vector<double> errors;
  std::vector<double> memory_errors;
  for (const TrainingRunScore& row : validation.rows) {
    validation.failed += row.failed ? 1 : 0;
    if (row.error_pct) errors.push_back(*row.error_pct);
    if (!row.memory_error_pct) continue;
    memory_errors.push_back(*row.memory_error_pct);
    judge(row, validation.verdicts);
  }
  validation.summary = summarize_errors(std::move(errors));
  validation.memory = summarize_errors(std::move(memory_errors));
  validation.peak_groups = group_peaks(validation.rows);
  validation.groups = group_errors(validation.rows);
  validation.sources = source_errors(validation.rows);
  validation.over_sources = means_of(validation.sources);
  validation.ranking = rank_runs(validation.rows);
  return validation;
}

}  // namespace tessera
