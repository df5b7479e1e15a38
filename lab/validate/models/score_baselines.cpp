#include "lab/validate/models/score_baselines.h"

#include <functional>
#include <map>
#include <utility>

#include "lab/fit/baselines/baseline_predictor.h"
#include "lab/fit/baselines/free_mlp.h"
#include "lab/fit/baselines/per_op_regression.h"
#include "sim/plan/plan.h"
#include "sim/plan/time_segments.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

constexpr std::uint64_t kSeed = 1;  ///< as train's default
enum Predictor : std::size_t { kOurs, kPublished, kRegression, kMlp };

/// Latency of a kernel on a GPU [s].
using Baseline = std::function<double(const Kernel&, const GpuTraits&)>;

/// The step with kernel times of `baseline`.
Seconds step_with(const Baseline& baseline, const Scenario& scenario,
                  const PredictorWeights& weights) {
  const GpuTraits gpu = gpu_traits(scenario.cluster.node.gpu);
  const BaselinePredictor predictor([&](const Kernel& kernel) { return baseline(kernel, gpu); });
  TimedProgram timed = plan_step(scenario, weights);
  TimedSegments segments = time_segments(timed.program, predictor, host_costs(scenario));
  timed.segments = std::move(segments.segments);
  timed.kernels = std::move(segments.kernels);
  return step_time_of(timed);
}

ErrorSummary errors_of(const std::vector<const ComparedRun*>& rows, std::size_t predictor) {
  std::vector<double> errors;
  for (const ComparedRun* row : rows) {
    if (row->error_pct[predictor]) errors.push_back(*row->error_pct[predictor]);
  }
  return summarize_errors(std::move(errors));
}

std::vector<PredictorErrors> group_rows(const std::vector<ComparedRun>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const ComparedRun*>> groups;
  for (const ComparedRun& row : rows) {
    groups[{"gpu", row.run.gpu}].push_back(&row);
    groups[{"model", row.run.model}].push_back(&row);
    groups[{"gpu and model", row.run.gpu + " " + row.run.model}].push_back(&row);
    groups[{"all", ""}].push_back(&row);
    if (row.error_pct[kPublished]) groups[{"published", ""}].push_back(&row);
  }
  std::vector<PredictorErrors> list;
  for (const auto& [name, of_group] : groups) {
    for (std::size_t p = 0; p < kModelPredictors.size(); ++p)
      list.push_back({kModelPredictors[p], name.first, name.second, errors_of(of_group, p)});
  }
  return list;
}

}  // namespace

BaselineComparison score_baselines(const ModelValidation& ours, const ScenarioOfRun& scenario_of,
                                   const PredictorWeights& weights,
                                   const std::vector<const GpuData*>& gpus, int jobs) {
  const PerOpRegression regression(gpus);
  const FreeMlp mlp(gpus, kSeed);
  const std::array<Baseline, 2> baselines{
      [&](const Kernel& kernel, const GpuTraits& gpu) { return regression.seconds(kernel, gpu); },
      [&](const Kernel& kernel, const GpuTraits& gpu) { return mlp.seconds(kernel, gpu); }};
  BaselineComparison comparison;
  std::vector<std::function<Seconds()>> steps;
  for (const ModelRunScore& row : ours.rows) {
    if (!row.error_pct) continue;
    comparison.rows.push_back({row.run, {row.error_pct, row.published_error_pct, {}, {}}});
    for (const Baseline& baseline : baselines)
      steps.push_back([&] { return step_with(baseline, scenario_of(row.run), weights); });
  }
  const auto times = forked_each(steps, jobs);
  for (std::size_t i = 0; i < times.size(); ++i) {
    ComparedRun& row = comparison.rows[i / baselines.size()];
    const double ratio = times[i].value() / *row.run.measured;
    row.error_pct[kRegression + i % baselines.size()] = 100 * (ratio - 1);
  }
  comparison.groups = group_rows(comparison.rows);
  return comparison;
}

}  // namespace tessera
