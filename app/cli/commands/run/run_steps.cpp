#include "app/cli/commands/run/run_steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/shell/home.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/longrun/checkpoint_writes.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunPower, host_is_confirmed, has_hosts, node_mean, node_peak,
                                   rack_mean, rack_peak)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepFigures, step_time, tokens_per_s, samples_per_s, fits,
                                   facility_j, idle, power, write_s, with_write_s)

namespace {

/// The time of a step in the state that `settings` describe.
Seconds step_time_in(const RunOptions& options, const std::vector<std::string>& settings,
                     const PredictorWeights& weights) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  const Scenario scenario = load_scenario(options.file, overrides, shipped_catalog());
  const TimedProgram timed = plan_step(scenario, weights);
  return forked([&] { return step_time_of(timed); });
}

}  // namespace

// SimGrid has one clock per process: every step is simulated in its own.
RunStep simulated_step(const RunOptions& options, Scenario scenario,
                       const std::vector<RunAnswer>& answers) {
  const PredictorWeights weights = shipped_weights();
  TimedProgram timed = plan_step(scenario, weights);
  RunStep step{.scenario = std::move(scenario),
               .states = {},
               .timed = std::move(timed),
               .figures = {},
               .writes = {},
               .without = {}};
  for (const RunAnswer& answer : answers) {
    for (const FailureClass& of : answer.plan.failures.classes) {
      if (!of.state.empty() && !step.states.contains(of.state))
        step.states[of.state] = step_time_in(options, of.state, weights);
    }
  }
  step.figures = forked([&] { return figures_of(run_step(step.timed).report); });
  if (options.tokens > 0 && step.figures.tokens_per_s <= 0)
    throw InputError({"--tokens", "is given, but the model has no tokens", "leave it out"});
  return step;
}

StepFigures figures_with_write(const RunOptions& options, const RunStep& step) {
  StepFigures figures = step.figures;
  const bool has_network = step.scenario.cluster.node.nic_count > 0;
  if (!has_network || !options.checkpoint_time.empty()) return figures;
  const BytesPerSecond storage = storage_of(options);
  CheckpointCost cost = checkpoint_cost(step.scenario, step.timed, storage);
  RunStep::Writes& known = step.writes[storage.value()];
  const auto time_of = [&](auto make, Bytes bytes) {
    return forked([&] { return step_time_of(make(with_storage(step.timed, storage), bytes)); })
        .value();
  };
  if (known.alone <= 0) known.alone = time_of(checkpoint_write_alone, cost.bytes);
  figures.write_s = known.alone;
  if (!options.asynchronous) return figures;
  cost = with_simulated_write(std::move(cost), Seconds(known.alone));
  const Bytes bytes = written_in_step(cost, figures.step_time);
  const auto [entry, is_new] = known.beside.try_emplace(bytes.value(), 0);
  if (is_new) entry->second = time_of(with_checkpoint_writes, bytes);
  figures.with_write_s = entry->second;
  return figures;
}

void set_slowdowns(const RunStep& step, RunAnswer& answer) {
  for (FailureClass& of : answer.plan.failures.classes) {
    if (of.state.empty()) continue;
    of.slowdown = std::max(1.0, step.states.at(of.state) / answer.step_time);
    answer.notes.push_back(
        formatted("%.30s: steps take %.3f times as long", of.name.c_str(), of.slowdown));
  }
}

}  // namespace tessera
