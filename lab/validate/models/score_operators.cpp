#include "lab/validate/models/score_operators.h"

#include <map>
#include <tuple>
#include <utility>

#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using ClassSums = std::map<std::pair<OperatorPass, OperatorClass>, OperatorSums>;

std::vector<OperatorClassScore> scores_of(const ClassSums& classes) {
  std::vector<OperatorClassScore> scores;
  for (const auto& [name, sums] : classes) {
    scores.push_back({.operator_class = name.second, .pass = name.first, .sums = sums});
  }
  return scores;
}

std::vector<OperatorCount> surplus_of(const std::vector<OperatorMatch>& matches) {
  std::map<std::pair<OperatorPass, OperatorKey>, OperatorCount> counts;
  for (const OperatorMatch& match : matches) {
    OperatorCount& count = counts[{match.pass, match.key}];
    count.key = match.key;
    count.pass = match.pass;
    count.timed += match.timed ? 1 : 0;
    count.launched += match.kernels > 0 ? 1 : 0;
    if (!match.matched()) count.unmatched += match.measured + match.predicted;
  }
  std::vector<OperatorCount> surplus;
  for (const auto& [name, count] : counts) {
    if (count.timed != count.launched) surplus.push_back(count);
  }
  return surplus;
}

Scenario scenario_of_operators(const ModelRun& run, const ScenarioOfRun& scenario_of) {
  Scenario scenario = scenario_of(run);
  if (scenario.step.kernels == KernelMode::eager) return scenario;
  throw InputError({run.where, "mode = '" + run.mode + "' merges operators",
                    "give operators that were timed alone: training or inference"});
}

/// Of a prediction in which launches are exact.
std::optional<Bounds> interval_of(const std::vector<OperatorMatch>& matches, Seconds predicted) {
  std::map<Kernel, std::pair<Seconds, LogSpread>> runs;  // by distinct kernel
  for (const OperatorMatch& match : matches) {
    if (!match.matched()) continue;
    for (const OperatorKernel& kernel : match.launched) {
      auto& [time, spread] = runs[kernel.kernel];
      time += kernel.time;
      spread = kernel.spread;
    }
  }
  SpreadSum sum;
  Seconds busy;
  for (const auto& [kernel, run] : runs) {
    sum.add(run.first, run.second);
    busy += run.first;
  }
  if (log_half_width(sum.relative()) <= 0) return std::nullopt;
  const Interval kernels = interval_80(busy, sum.relative());
  const Seconds exact = predicted - busy;
  return Bounds{(exact + kernels.low).value(), (exact + kernels.high).value()};
}

OperatorRunScore score_run(const OperatorRun& measured, const ScenarioOfRun& scenario_of,
                           const PredictorWeights& weights) {
  OperatorRunScore score{.run = measured.run, .skipped = measured.run.fault};
  if (!score.skipped.empty()) return score;
  std::vector<OperatorMatch> matches;
  try {
    const Scenario scenario = scenario_of_operators(measured.run, scenario_of);
    const GpuSpec& gpu = scenario.cluster.node.gpu;
    const auto predictor =
        make_predictor(scenario.predictor_form, gpu, with_overlays(weights, scenario.overlays, gpu),
                       Load::isolated);
    score.profile = scenario.step.framework.name;
    matches = match_operators(measured.operators, build_model_graph(scenario.model, scenario.step),
                              *predictor);
  } catch (const InputError& error) {
    score.skipped = without_place(error.what(), measured.run.where);
    return score;
  }
  ClassSums classes;
  for (const OperatorMatch& match : matches) {
    classes[{match.pass, match.key.operator_class}].add(match);
    score.total.add(match);
  }
  score.classes = scores_of(classes);
  score.unmatched = surplus_of(matches);
  score.interval = interval_of(matches, score.total.predicted);
  return score;
}

std::vector<OperatorGpuScore> by_gpu(const std::vector<OperatorRunScore>& runs) {
  std::map<std::string, std::pair<ClassSums, OperatorSums>> gpus;
  for (const OperatorRunScore& run : runs) {
    if (!run.skipped.empty()) continue;
    auto& [classes, total] = gpus[run.run.gpu];
    for (const OperatorClassScore& score : run.classes) {
      classes[{score.pass, score.operator_class}].add(score.sums);
    }
    total.add(run.total);
  }
  std::vector<OperatorGpuScore> scores;
  for (const auto& [gpu, sums] : gpus) {
    scores.push_back({.gpu = gpu, .classes = scores_of(sums.first), .total = sums.second});
  }
  return scores;
}

}  // namespace

void OperatorSums::add(const OperatorMatch& match) {
  if (match.matched()) {
    ++matched;
    kernels += match.kernels;
    measured += match.measured;
    predicted += match.predicted;
  } else if (match.timed) {
    ++only_timed;
    only_timed_measured += match.measured;
  } else {
    ++only_launched;
    only_launched_predicted += match.predicted;
  }
}

void OperatorSums::add(const OperatorSums& other) {
  matched += other.matched;
  kernels += other.kernels;
  measured += other.measured;
  predicted += other.predicted;
  only_timed += other.only_timed;
  only_timed_measured += other.only_timed_measured;
  only_launched += other.only_launched;
  only_launched_predicted += other.only_launched_predicted;
}

std::optional<double> OperatorSums::error_pct() const {
  if (matched == 0) return std::nullopt;
  return (predicted / measured - 1.0) * 100.0;
}

OperatorValidation score_operators(const std::vector<OperatorRun>& runs,
                                   const ScenarioOfRun& scenario_of,
                                   const PredictorWeights& weights) {
  OperatorValidation validation;
  std::vector<ScoredError> errors;
  for (const OperatorRun& run : runs) {
    validation.runs.push_back(score_run(run, scenario_of, weights));
    const OperatorRunScore& score = validation.runs.back();
    if (!score.skipped.empty())
      validation.skipped.push_back({line_name(run.run.where), run.run.where, score.skipped});
    const auto error = score.total.error_pct();
    if (!error) continue;
    errors.push_back({.error_pct = *error, .covered = {}});
    if (score.interval) errors.back().covered = score.interval->hold(score.total.measured.value());
  }
  validation.gpus = by_gpu(validation.runs);
  validation.summary = summarize_scored(errors);
  return validation;
}

}  // namespace tessera
