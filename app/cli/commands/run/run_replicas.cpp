// Jobs that train on with fewer replicas: which can leave, and what their steps then take.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands/run/run_steps.h"
#include "app/shell/home.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/reliability/replica_set.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// Replicas that are alike: the answer does not depend on which of them are left.
void check_alike(const RunOptions& options, const Scenario& scenario) {
  const char* field = !scenario.perturbation.gpus.empty() ? "perturbation.gpus"
                      : !scenario.step.split.micro_batches_per_replica.empty()
                          ? "parallelism.micro_batches_per_replica"
                          : nullptr;
  if (field != nullptr)
    throw InputError({"--policy",
                      "is " + options.policy + ", but " + field +
                          " tells replicas apart, and which of them are left is not known",
                      "leave it out, or use --policy restart"});
}

[[noreturn]] void refuse_alive(const Scenario& scenario) {
  const bool alone = scenario.step.layout.data == 1;
  throw InputError(
      {"--policy",
       alone ? "is replica-wise, but the job has one replica"
             : "is replica-wise, but weights, optimizer states or experts are divided among all "
               "replicas: those that are left do not hold what the others lose",
       alone ? "use --policy restart"
             : "use --policy elastic, which reads the checkpoint, or divide them in groups "
               "(training.data_parallel.shard_group)"});
}

void check_least(const RunOptions& options, int replicas) {
  if (options.least_replicas > replicas)
    throw InputError({"--least-replicas",
                      "is " + std::to_string(options.least_replicas) + ", but the job has " +
                          std::to_string(replicas),
                      "give fewer"});
}

std::vector<std::string> settings_without(const RunOptions& options, const Scenario& scenario,
                                          int left, std::int64_t micro_batches) {
  const std::int64_t micro_batch = scenario.step.micro_batch;
  std::vector<std::string> settings = options.overrides;
  const auto set = [&settings](const char* field, std::int64_t value) {
    settings.push_back(std::string(field) + "=" + std::to_string(value));
  };
  set("parallelism.data", left);
  set("training.micro_batch", micro_batch);
  set("training.micro_batches", micro_batches);
  set("training.global_batch", micro_batch * micro_batches * left);
  if (!scenario.step.placement.empty()) settings.emplace_back("parallelism.placement=[]");
  return settings;
}

StepFigures simulated_without(const RunOptions& options, const RunStep& step, int left,
                              std::int64_t micro_batches) {
  const auto [known, is_new] = step.without.try_emplace({left, micro_batches});
  if (!is_new) return known->second;
  try {
    const Scenario scenario =
        load_scenario(options.file, settings_without(options, step.scenario, left, micro_batches),
                      shipped_catalog());
    const TimedProgram timed = plan_step(scenario, shipped_weights());
    known->second = forked([&] { return figures_of(run_step(timed).report); });
  } catch (const InputError& error) {
    const Problem& problem = error.problems().front();
    throw InputError({"--policy",
                      "is " + options.policy + ", but with " + std::to_string(left) + " of " +
                          std::to_string(step.scenario.step.layout.data) +
                          " replicas the step cannot run: " + problem.what,
                      "give more --least-replicas, or use --policy restart"});
  }
  return known->second;
}

/// The fewest replicas that train in any run. Failures do not depend on what the job does, and its
/// pace hardly on when it takes replicas back.
int least_replicas_met(const RunOptions& options, const RunAnswer& answer) {
  const std::vector<RunRecord> runs = simulate_runs(answer.plan, options.seed, options.seeds);
  return std::ranges::min(runs, {}, &RunRecord::least_replicas).least_replicas *
         answer.replicas_together;
}

/// How many replicas there can be, to the fewest that are met: those that whole nodes hold.
std::vector<int> replicas_on_fewer_nodes(const RunPlan& plan, int least, int together) {
  const ReplicaSet replicas(plan.replicas, plan.nodes);
  std::vector<int> all;
  for (int nodes = plan.nodes - 1; nodes > 0; --nodes) {
    const int left = replicas.on(nodes) * together;
    if (left < std::max(least, 1)) break;
    if (left < plan.replicas * together && (all.empty() || left < all.back())) all.push_back(left);
  }
  return all;
}

}  // namespace

void set_replicas(const RunOptions& options, const Scenario& scenario, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  const int data = scenario.step.layout.data;
  plan.elastic = options.policy == "elastic";
  plan.replica_wise = options.policy == "replica-wise";
  check_least(options, data);
  answer.batch = options.batch == "kept" ? BatchWithout::kept : BatchWithout::smaller;
  answer.replicas = data;
  answer.global_batch = scenario.step.global_batch;
  answer.micro_batches = scenario.step.micro_batches();
  if (!plan.elastic && !plan.replica_wise) return;
  check_alike(options, scenario);
  const int together = replicas_that_leave_together(scenario.step, plan.replica_wise);
  if (together == 0) refuse_alive(scenario);
  answer.replicas_together = together;
  plan.replicas = data / together;
  plan.least_replicas = (options.least_replicas + together - 1) / together;
}

void set_replica_paces(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  if ((!plan.elastic && !plan.replica_wise) || plan.replicas == 1) return;
  const int together = answer.replicas_together;
  const StepOptions& whole = step.scenario.step;
  const std::vector<int> by_nodes =
      replicas_on_fewer_nodes(plan, least_replicas_met(options, answer), together);
  for (const int left : replicas_to_simulate(whole, by_nodes, answer.batch)) {
    StepWithout of{.left = left,
                   .micro_batches = micro_batches_without(whole, left, answer.batch),
                   .step = {}};
    const StepFigures figures = simulated_without(options, step, left, of.micro_batches);
    of.step = figures.step_time;
    of.fits = figures.fits;
    answer.without.push_back(of);
    if (of.fits || !answer.fits) continue;
    answer.fits = false;
    answer.notes.push_back("with " + std::to_string(left) + " of " +
                           std::to_string(answer.replicas) +
                           " replicas a step needs more memory than a GPU has");
  }
  if (answer.without.empty()) return;
  plan.pace_of_replicas =
      pace_without(whole, answer.step_time, answer.without, together, answer.batch);
}

}  // namespace tessera
