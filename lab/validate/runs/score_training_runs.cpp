#include "lab/validate/runs/score_training_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "hw/units/input_error.h"
#include "lab/validate/runs/peak_of_run.h"
#include "lab/validate/runs/run_groups.h"
#include "sim/collectives/measured_fabric.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024 * 1024;

double in_gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGiB;
}

/// Of the scenario, which settings may have made another than the columns say.
void take_facts(const Json& json, TrainingRun& run) {
  run.precision = json["precision"];
  run.layout.tensor = json["tp"];
  run.layout.pipeline = json["pp"];
  run.layout.data = json["dp"];
  run.sequence_length = json["seq_len"];
  run.micro_batch = json["micro_batch"];
  run.global_batch = json["global_batch"];
  run.recompute = static_cast<Recompute>(json["recompute"].get<int>());
}

Json facts_of(const Scenario& scenario) {
  const StepOptions& step = scenario.step;
  return {{"profile", step.framework.name},       {"experts", scenario.model.experts > 0},
          {"precision", name_of(step.precision)}, {"tp", step.layout.tensor},
          {"pp", step.layout.pipeline},           {"dp", step.layout.data},
          {"seq_len", step.sequence_length},      {"micro_batch", step.micro_batch},
          {"global_batch", step.global_batch},    {"recompute", static_cast<int>(step.recompute)}};
}

void add_time(const StepReport& report, Json& answer) {
  answer["step_s"] = report.step_time.value();
  if (!report.interval) return;
  answer["low_s"] = report.interval->time.low.value();
  answer["high_s"] = report.interval->time.high.value();
}

/// What tells apart what limits a measured step: the GPUs, or what joins them.
void add_regime(const TrainingRun& run, const Scenario& scenario, const Program& program,
                Json& answer) {
  const FlopsPerSecond peak = scenario.cluster.node.gpu.peak(scenario.step.precision) * run.n_gpus;
  if (run.step_time && peak.value() > 0)
    answer["mfu"] = (program.model_flops / *run.step_time).value() / peak.value();
  const MeasuredFabric fabric = measured_fabric(scenario.cluster, scenario.collectives.tuning());
  if (fabric.promised.value() > 0) answer["fabric_share"] = run.all_reduce / fabric.promised;
}

void add_memory(const TrainingRun& run, const Scenario& scenario, const ProgramOfRun& program,
                Json& answer) {
  const Bytes device = device_peak(scenario, program);
  const Bytes capacity = scenario.cluster.node.gpu.memory;
  answer["device_gib"] = in_gib(device);
  answer["fits"] = device <= capacity;
  if (run.peak_memory_gib)
    answer["peak_gib"] = in_gib(peak_of_training_run(run, scenario, program));
}

/// The child's answer as JSON: facts, times and memory, or the reason why there are none. Time is
/// left out where memory alone was measured.
std::string simulate_run(const TrainingRun& run, const ScenarioOfTrainingRun& scenario_of,
                         const PredictorWeights& weights) {
  try {
    const Scenario scenario = scenario_of(run);
    Json answer = facts_of(scenario);
    const bool memory_alone =
        !run.step_time && (run.peak_memory_gib || run.outcome != RunOutcome::not_stated);
    const bool needs_time =
        scenario.memory.planner != MemoryPlanner::off || scenario.step.framework.records_streams;
    if (memory_alone && !needs_time) {
      const Program program = build_program(scenario.model, scenario.step);
      add_memory(run, scenario, {program}, answer);
      return answer.dump();
    }
    const TimedProgram timed = plan_step(scenario, weights);
    add_memory(run, scenario, {timed.program, &timed}, answer);
    if (!memory_alone) {
      add_time(run_step(timed).report, answer);
      add_regime(run, scenario, timed.program, answer);
    }
    return answer.dump();
  } catch (const InputError& error) {
    return Json{{"skipped", error.what()}}.dump();
  }
}

std::optional<double> number_in(const Json& json, const char* name) {
  if (!json.contains(name)) return std::nullopt;
  return json[name].get<double>();
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
    score.skipped = without_place(json["skipped"], run.where);
    return score;
  }
  score.profile = json["profile"];
  score.experts = json["experts"];
  take_facts(json, score.run);
  if (const auto step = number_in(json, "step_s")) score.simulated = Seconds(*step);
  if (const auto low = number_in(json, "low_s"))
    score.interval = Bounds{*low, *number_in(json, "high_s")};
  score.fits = json["fits"].get<bool>();
  score.device_gib = number_in(json, "device_gib");
  score.mfu = number_in(json, "mfu");
  score.fabric_share = number_in(json, "fabric_share");
  score.simulated_peak_gib = number_in(json, "peak_gib");
  if (run.step_time) score.error_pct = 100 * (*score.simulated / *run.step_time - 1);
  if (run.peak_memory_gib)
    score.memory_error_pct = 100 * (*score.simulated_peak_gib / *run.peak_memory_gib - 1);
  return score;
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

std::vector<SourceErrors> source_errors(const std::vector<TrainingRunScore>& rows) {
  std::map<std::string, SourceErrors> sources;
  std::map<std::string, std::vector<ScoredError>> errors;
  for (const TrainingRunScore& row : rows) {
    const std::string name = source_name(row.run);
    SourceErrors& source = sources[name];
    source.measured += row.measured ? 1 : 0;
    if (!row.error_pct) continue;
    ++source.expressed;
    errors[name].push_back(scored_error(row));
  }
  std::vector<SourceErrors> list;
  for (auto& [name, source] : sources) {
    source.source = name;
    source.errors = summarize_scored(errors[name]);
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

SkippedRow skipped_row(const TrainingRunScore& row) {
  const std::string id = row.run.id.empty() ? line_name(row.run.where) : row.run.id;
  return {id, row.run.where, row.skipped};
}

/// Rows of both lists in the order of the files, which is that of the runs in them.
std::vector<TrainingRunScore> in_file_order(std::vector<TrainingRunScore> scores,
                                            const std::vector<SkippedRun>& skipped) {
  for (const SkippedRun& row : skipped) scores.push_back(score_of(row));
  std::map<std::string, std::size_t> files;
  const auto place = [&](const TrainingRunScore& score) {
    const std::string& where = score.run.where;
    const std::size_t colon = where.rfind(':');
    const auto file = files.emplace(where.substr(0, colon), files.size()).first->second;
    return std::pair(file, std::stoll(where.substr(colon + 1)));
  };
  for (const TrainingRunScore& score : scores) place(score);
  std::ranges::stable_sort(scores, {}, place);
  return scores;
}

}  // namespace

std::optional<double> FitVerdicts::balanced_accuracy_pct() const {
  if (ran == 0 || out_of_memory == 0) return std::nullopt;
  return 50.0 * ran_found / ran + 50.0 * out_of_memory_found / out_of_memory;
}

TrainingRunValidation score_training_runs(
    const TrainingRuns& runs, const ScenarioOfTrainingRun& scenario_of,
    const PredictorWeights& weights, int jobs,
    const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<std::function<std::string()>> tasks;
  for (const TrainingRun& run : runs.runs)
    tasks.push_back([&] { return simulate_run(run, scenario_of, weights); });
  const std::vector<ForkedOutcome> outcomes = run_forked_each(
      tasks, jobs, [&](std::size_t done) { progress(done, runs.runs.size()); },
      may_run_another_step);
  std::vector<TrainingRunScore> scores;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    scores.push_back(score_of(runs.runs[i], outcomes[i]));
  TrainingRunValidation validation;
  validation.rows = in_file_order(std::move(scores), runs.skipped);
  validation.corrections = runs.corrections;
  std::vector<ScoredError> errors;
  std::vector<double> memory_errors;
  for (const TrainingRunScore& row : validation.rows) {
    validation.failed += row.failed ? 1 : 0;
    if (row.error_pct) errors.push_back(scored_error(row));
    if (row.memory_error_pct) memory_errors.push_back(*row.memory_error_pct);
    judge(row, validation.verdicts);
    if (!row.skipped.empty()) validation.skipped.push_back(skipped_row(row));
  }
  validation.summary = summarize_scored(errors);
  validation.memory = summarize_errors(std::move(memory_errors));
  validation.peak_groups = group_peaks(validation.rows);
  validation.verdict_groups = group_verdicts(validation.rows);
  validation.groups = group_errors(validation.rows);
  validation.sources = source_errors(validation.rows);
  validation.over_sources = means_of(validation.sources);
  validation.ranking = rank_runs(validation.rows);
  return validation;
}

}  // namespace tessera
