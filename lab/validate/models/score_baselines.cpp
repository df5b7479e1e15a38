#include "lab/validate/models/score_baselines.h"

#include <charconv>
#include <functional>
#include <map>
#include <utility>

#include "lab/fit/baselines/baseline_predictor.h"
#include "lab/fit/baselines/free_mlp.h"
#include "lab/fit/baselines/per_op_regression.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

constexpr std::uint64_t kSeed = 1;  ///< as train's default
enum Predictor : std::size_t { kOurs, kPublished, kRegression, kMlp };

/// Latency of a kernel on a GPU [s].
using Baseline = std::function<double(const Kernel&, const GpuTraits&)>;

/// Simulated step time in text, with kernel times of `baseline`.
std::string simulate_with(const Baseline& baseline, const Scenario& scenario,
                          const PredictorWeights& weights) {
  const GpuTraits gpu = gpu_traits(scenario.cluster.node.gpu);
  const BaselinePredictor predictor([&](const Kernel& kernel) { return baseline(kernel, gpu); });
  TimedProgram timed = plan_step(scenario, weights);
  TimedSegments segments = time_segments(timed.program, predictor, host_costs(scenario.step));
  timed.segments = std::move(segments.segments);
  timed.kernels = std::move(segments.kernels);
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, simulate(timed).step_time.value()).ptr;
  return {digits, end};
}

double number_of(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
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
  std::vector<std::function<std::string()>> tasks;
  for (const ModelRunScore& row : ours.rows) {
    if (!row.error_pct) continue;
    comparison.rows.push_back({row.run, {row.error_pct, row.published_error_pct, {}, {}}});
    for (const Baseline& baseline : baselines)
      tasks.push_back([&] { return simulate_with(baseline, scenario_of(row.run), weights); });
  }
  const std::vector<std::string> times = run_forked_all(tasks, jobs);
  for (std::size_t i = 0; i < times.size(); ++i) {
    ComparedRun& row = comparison.rows[i / baselines.size()];
    const double ratio = number_of(times[i]) / row.run.measured->value();
    row.error_pct[kRegression + i % baselines.size()] = 100 * (ratio - 1);
  }
  comparison.groups = group_rows(comparison.rows);
  return comparison;
}

}  // namespace tessera
