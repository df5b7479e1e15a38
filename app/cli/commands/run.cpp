// `tessera run`: a training job for days on a cluster that fails.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/commands/run_options.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/longrun/run_picture.h"
#include "sim/process/answer.h"
#include "sim/reliability/spare_count.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// Whether nodes leave the job for repair.
bool loses_nodes(const RunPlan& plan) {
  return !plan.recorded.empty() ||
         std::ranges::any_of(plan.failures.classes,
                             [](const FailureClass& of) { return of.repair.value() > 0; });
}

void add_interval_advice(RunAnswer& answer) {
  constexpr int kMostSeeds = 10;
  const double stops = answer.plan.failures.stops_per_day(answer.plan.nodes);
  if (stops <= 0) return;
  IntervalAdvice advice{.mean_time_to_failure = Seconds(86'400 / stops)};
  const Seconds checkpoint = to_seconds(answer.plan.checkpoint);
  advice.young = young_interval(checkpoint, advice.mean_time_to_failure);
  advice.daly = daly_interval(checkpoint, advice.mean_time_to_failure);
  if (checkpoint.value() > 0)
    advice.best = best_interval(answer.plan, advice.young, answer.first_seed,
                                std::min(answer.runs.seeds, kMostSeeds));
  answer.intervals = advice;
}

void add_spare_advice(RunAnswer& answer) {
  const RunPlan& plan = answer.plan;
  const double out = nodes_out(plan.failures, plan.nodes + plan.spares).mean;
  if (out > 0 && plan.repair_crews == 0)
    answer.spares =
        SpareAdvice{.mean_out = out, .spares = spares_for(plan.failures, plan.nodes, 0.99)};
}

TokenGoal token_goal(const RunOptions& options, const RunAnswer& answer) {
  RunPlan plan = answer.plan;
  const Seconds work = Seconds(options.tokens / answer.tokens_per_s);
  plan.work = std::max(Micros(1), to_micros(work));
  plan.length = to_micros(Seconds(kMostRunDays * 86'400));
  TokenGoal goal{.tokens = options.tokens, .hours_without_failures = work.value() / 3600};
  std::vector<double> hours;
  for (const RunRecord& run : simulate_runs(plan, options.seed, options.seeds))
    if (run.work_done) hours.push_back(in_hours(run.wall));
  goal.reached = static_cast<int>(hours.size());
  if (!hours.empty()) goal.hours = figure_of(std::move(hours));
  return goal;
}

/// The time of a step in the state that `settings` describe.
Seconds step_time_in(const RunOptions& options, const std::vector<std::string>& settings,
                     const PredictorWeights& weights) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  const Scenario scenario = load_scenario(options.file, overrides, shipped_catalog());
  return forked([&] { return step_time_of(scenario, weights); });
}

using StateTimes = std::map<std::vector<std::string>, Seconds>;

/// Steps in the states of slow clusters, each once. SimGrid has one clock per process: ahead of the
/// simulation in this one.
StateTimes times_of_states(const RunOptions& options, const FailureModel& failures,
                           const PredictorWeights& weights) {
  StateTimes times;
  for (const FailureClass& of : failures.classes) {
    if (!of.state.empty() && !times.contains(of.state))
      times[of.state] = step_time_in(options, of.state, weights);
  }
  return times;
}

void set_slowdowns(const StateTimes& times, RunAnswer& answer) {
  for (FailureClass& of : answer.plan.failures.classes) {
    if (of.state.empty()) continue;
    of.slowdown = std::max(1.0, times.at(of.state) / answer.step_time);
    char note[160];
    std::snprintf(note, sizeof(note), "%.30s: steps take %.3f times as long", of.name.c_str(),
                  of.slowdown);
    answer.notes.emplace_back(note);
  }
}

void add_notes(const RunOptions& options, RunAnswer& answer) {
  if (options.spares > 0 && !loses_nodes(answer.plan))
    answer.notes.emplace_back("the spares are never used: without --repair a failed node restarts");
  if (!answer.fits)
    answer.notes.emplace_back("a step needs more memory than a GPU has (tessera simulate)");
}

/// A simulated step, for all variants of a run.
struct RunStep {
  Scenario scenario;
  StateTimes states;
  TimedProgram timed;
  StepReport report;
};

RunStep simulated_step(const RunOptions& options, Scenario scenario,
                       const std::vector<RunAnswer>& answers) {
  const PredictorWeights weights = shipped_weights();
  StateTimes states;
  for (const RunAnswer& answer : answers)
    states.merge(times_of_states(options, answer.plan.failures, weights));
  StepRun step = run_step(scenario, weights);
  if (options.tokens > 0 && step.report.tokens_per_s <= 0)
    throw InputError({"--tokens", "is given, but the model has no tokens", "leave it out"});
  return {std::move(scenario), std::move(states), std::move(step.timed), std::move(step.report)};
}

void add_step(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  finish_plan(options, step.scenario, step.timed, step.report, answer);
  check_run_size(options, answer.plan);
  set_slowdowns(step.states, answer);
  answer.runs = statistics_of(simulate_runs(answer.plan, options.seed, options.seeds));
  answer.bill = run_bill(step.scenario.cluster, step.report, answer.plan, answer.runs);
}

void print_one(const RunOptions& options, const RunStep& step, RunAnswer answer) {
  add_step(options, step, answer);
  answer.timeline = simulate_run(answer.plan, options.seed, true).timeline;
  add_interval_advice(answer);
  add_spare_advice(answer);
  if (options.tokens > 0) answer.goal = token_goal(options, answer);
  add_notes(options, answer);
  if (!options.picture_file.empty())
    write_output_file(options.picture_file,
                      timeline_picture(answer.scenario + ", first seed", answer.timeline));
  print(options.format == "json" ? json_text(answer, TESSERA_VERSION) : table_text(answer));
}

ExitCode run_long(const RunOptions& asked, const std::set<std::string>& given) {
  Scenario scenario = load_scenario(asked.file, asked.overrides, shipped_catalog());
  const RunOptions options = with_section(asked, scenario, given);
  const std::vector<RunVariant> variants = run_variants(options);
  if (!options.vary.empty() && !options.picture_file.empty())
    throw InputError({"--picture", "draws one run", "leave out --vary, or the picture"});
  std::vector<RunAnswer> answers;
  for (const RunVariant& variant : variants)
    answers.push_back(planned_run(variant.options, scenario));
  const RunStep step = simulated_step(options, std::move(scenario), answers);
  const ExitCode code = step.report.memory.fits ? ExitCode::ok : ExitCode::does_not_fit;
  if (options.vary.empty()) {
    print_one(options, step, std::move(answers.front()));
    return code;
  }
  std::vector<VariantResult> results;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    add_step(variants[i].options, step, answers[i]);
    results.push_back(
        {variants[i].settings, answers[i].goodput_share(), std::move(answers[i].runs)});
  }
  print(options.format == "json" ? variants_json(results, TESSERA_VERSION)
                                 : variants_text(results));
  return code;
}

void add_failure_options(CLI::App& command, RunOptions& options) {
  command
      .add_option("--failures-per-1000-node-days", options.per_1000_node_days,
                  "of any node, exponential; 6.5 on RSC-1 (arXiv:2410.21680)")
      ->check(CLI::Range(0.0, 1e9));
  command.add_option("--failures", options.failures,
                     "failures by component: a file, or a name in configs/reliability");
  command.add_option("--fault-trace", options.fault_trace,
                     "replay a record of faults: CSV with node, start_day, end_day");
  command
      .add_option("--trace-nodes", options.trace_nodes,
                  "nodes of that record's cluster (default: up to the highest that it names)")
      ->check(CLI::Range(1, kMostRunNodes));
  command.add_option("--detection", options.detection,
                     "until a failure is noticed, as 10min (default 0 s)");
  command.add_option("--restart", options.restart,
                     "from the stop to the first step, reading the checkpoint included (default: 5 "
                     "min and the reading)");
  command.add_option("--repair", options.repair,
                     "mean time that a failed node is out, as 24h (default: 0 s, it restarts)");
  command.add_option("--repair-crews", options.repair_crews, "nodes repaired at a time; 0: all")
      ->check(CLI::Range(0, 1'000'000));
}

void add_policy_options(CLI::App& command, RunOptions& options) {
  command
      .add_option("--policy", options.policy,
                  "where nodes are missing: restart waits for them, elastic trains on with fewer "
                  "replicas")
      ->check(CLI::IsMember({"restart", "elastic"}))
      ->capture_default_str();
  command.add_option("--spares", options.spares, "nodes that stand by")
      ->check(CLI::Range(0, 1'000'000));
  command.add_option("--least-replicas", options.least_replicas, "of --policy elastic (default 1)")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--checkpoint-interval", options.interval,
                     "of training, to whole steps (default 60min)");
  command.add_option("--checkpoint-time", options.checkpoint_time,
                     "what one takes, as 40s (default: from its bytes and the links)");
  command.add_option("--storage-bandwidth", options.storage_bandwidth,
                     "of the storage for the whole job, as 50GB/s (default: no limit)");
  command.add_flag("--asynchronous", options.asynchronous,
                   "the job waits for the copy to host memory alone");
  command.add_option("--memory-interval", options.memory_interval,
                     "copies in the memory of other nodes so often, as 5min (default: none)");
}

}  // namespace

void add_run_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Simulate days of a training job: failures, checkpoints, spares, goodput");
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  command
      ->add_option("--days", options->days,
                   "of wall-clock time (default 30; with --fault-trace: as long as that)")
      ->check(CLI::Range(1e-3, kMostRunDays));
  add_failure_options(*command, *options);
  add_policy_options(*command, *options);
  command->add_option("--tokens", options->tokens, "also say when so many are trained, as 15e12")
      ->check(CLI::Range(1.0, 1e18));
  command
      ->add_option("--vary", options->vary,
                   "a line for each value instead, as spares=0,16,32; repeatable, for every "
                   "combination")
      ->allow_extra_args(false);
  command->add_option("--seeds", options->seeds, "runs with other failures (default 20)")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--seed", options->seed, "of the first run (default 1)");
  command->add_option("--picture", options->picture_file,
                      "write what the job did, day by day, as SVG (first seed)");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, command, &exit_code] {
    std::set<std::string> given;
    for (const CLI::Option* option : command->get_options())
      if (option->count() > 0) given.insert(option->get_name());
    exit_code = run_long(*options, given);
  });
}

}  // namespace tessera
