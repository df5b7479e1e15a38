#include "sim/validate/score_operators.h"

#include <map>
#include <tuple>
#include <utility>

#include "hw/units/input_error.h"
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

OperatorRunScore score_run(const OperatorRun& measured, const ScenarioOfRun& scenario_of,
                           const PredictorWeights& weights) {
  OperatorRunScore score{.run = measured.run};
  std::vector<OperatorMatch> matches;
  try {
    const Scenario scenario = scenario_of_operators(measured.run, scenario_of);
    const auto predictor =
        make_predictor(scenario.predictor_form, scenario.cluster.node.gpu, weights, Load::isolated);
    matches = match_operators(measured.operators, build_model_graph(scenario.model, scenario.step),
                              *predictor);
  } catch (const InputError& error) {
    score.skipped = error.what();
    return score;
  }
  ClassSums classes;
  for (const OperatorMatch& match : matches) {
    classes[{match.pass, match.key.operator_class}].add(match);
    score.total.add(match);
  }
  score.classes = scores_of(classes);
  score.unmatched = surplus_of(matches);
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
  std::vector<double> errors;
  for (const OperatorRun& run : runs) {
    validation.runs.push_back(score_run(run, scenario_of, weights));
    const auto error = validation.runs.back().total.error_pct();
    if (error) errors.push_back(*error);
  }
  validation.gpus = by_gpu(validation.runs);
  validation.summary = summarize_errors(std::move(errors));
  return validation;
}

}  // namespace tessera
