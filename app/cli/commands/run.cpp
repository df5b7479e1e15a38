// `tessera run`: a training job for days on a cluster that fails.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/commands/run_options.h"
#include "app/cli/commands/run_steps.h"
#include "app/cli/commands/run_store.h"
#include "app/html/run_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/longrun/run_picture.h"
#include "sim/reliability/spare_count.h"

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

void add_notes(const RunOptions& options, RunAnswer& answer) {
  if (options.spares > 0 && !loses_nodes(answer.plan))
    answer.notes.emplace_back("the spares are never used: without --repair a failed node restarts");
  if (!answer.fits)
    answer.notes.emplace_back("a step needs more memory than a GPU has (tessera simulate)");
}

void add_plan_of_step(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  finish_plan(options, step.scenario, step.timed, figures_with_write(options, step), answer);
  check_run_size(options, answer.plan);
  set_slowdowns(step, answer);
}

void add_bill(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  const auto price = price_of(options, answer.gpu);
  answer.bill = run_bill(step.scenario.cluster, step.figures, answer.plan, answer.runs,
                         price ? price->dollars_per_hour : 0);
  if (price) answer.bill.price = price->text();
}

void print_one(const RunOptions& options, const RunStep& step, RunAnswer answer) {
  add_plan_of_step(options, step, answer);
  answer.runs = statistics_of(simulate_runs(answer.plan, options.seed, options.seeds));
  add_bill(options, step, answer);
  answer.timeline = simulate_run(answer.plan, options.seed, true).timeline;
  add_interval_advice(answer);
  add_spare_advice(answer);
  if (options.tokens > 0) answer.goal = token_goal(options, answer);
  add_notes(options, answer);
  if (!options.picture_file.empty())
    write_output_file(options.picture_file,
                      timeline_picture(answer.scenario + ", first seed", answer.timeline));
  if (!options.report_file.empty())
    write_output_file(options.report_file, run_page(answer, TESSERA_VERSION));
  print(options.format == "json" ? json_text(answer, TESSERA_VERSION)
                                 : for_people(table_text(answer)));
}

/// The scenarios that `--vary scenario=A,B` names, or the one that was given; the rest of `--vary`
/// stays in `asked`.
std::vector<std::string> take_scenarios(RunOptions& asked) {
  std::vector<std::string> files;
  const auto names_scenarios = [](const std::string& axis) {
    return axis.starts_with("scenario=");
  };
  for (const std::string& axis : asked.vary) {
    if (!names_scenarios(axis)) continue;
    std::istringstream list(axis.substr(axis.find('=') + 1));
    for (std::string file; std::getline(list, file, ',');) files.push_back(file);
  }
  std::erase_if(asked.vary, names_scenarios);
  return files;
}

RunStore::Result stored_or_simulated(const RunOptions& options, const RunAnswer& answer,
                                     RunStore& store) {
  const std::string key = key_of_run(answer.plan, options, answer.tokens_per_s);
  if (auto known = store.find(key)) return std::move(*known);
  RunStore::Result result{
      .runs = statistics_of(simulate_runs(answer.plan, options.seed, options.seeds)), .goal = {}};
  if (options.tokens > 0) result.goal = token_goal(options, answer);
  store.add(key, result);
  return result;
}

VariantResult result_of(const RunVariant& variant, const RunStep& step, RunAnswer& answer,
                        RunStore& store) {
  add_plan_of_step(variant.options, step, answer);
  RunStore::Result simulated = stored_or_simulated(variant.options, answer, store);
  answer.runs = simulated.runs;
  add_bill(variant.options, step, answer);
  VariantResult result{.settings = variant.settings,
                       .goodput_share = answer.goodput_share(),
                       .runs = answer.runs,
                       .goal = std::move(simulated.goal)};
  if (answer.bill.dollars && answer.runs.wall.mean > 0)
    result.dollars_per_hour = *answer.bill.dollars / answer.runs.wall.mean;
  return result;
}

ExitCode run_variants_of(RunOptions asked, const std::set<std::string>& given) {
  const std::vector<std::string> named = take_scenarios(asked);
  RunStore store(asked.store_file);
  std::vector<VariantResult> results;
  ExitCode code = ExitCode::ok;
  const std::vector<std::string> files = named.empty() ? std::vector{asked.file} : named;
  for (const std::string& file : files) {
    asked.file = file;
    Scenario scenario = load_scenario(file, asked.overrides, shipped_catalog());
    const RunOptions options = with_section(asked, scenario, given);
    std::vector<RunVariant> variants = run_variants(options);
    std::vector<RunAnswer> answers;
    for (const RunVariant& variant : variants)
      answers.push_back(planned_run(variant.options, scenario));
    const RunStep step = simulated_step(options, std::move(scenario), answers);
    if (!step.figures.fits) code = ExitCode::does_not_fit;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (!named.empty())
        variants[i].settings.emplace(variants[i].settings.begin(), "scenario", step.scenario.name);
      results.push_back(result_of(variants[i], step, answers[i], store));
    }
  }
  print(asked.format == "json" ? variants_json(results, asked.deadline_days, TESSERA_VERSION)
                               : for_people(variants_text(results, asked.deadline_days)));
  return code;
}

ExitCode run_long(const RunOptions& asked, const std::set<std::string>& given) {
  if (asked.deadline_days > 0 && asked.tokens <= 0)
    throw InputError({"--deadline", "is given without a goal", "say --tokens"});
  if (asked.vary.empty() && !asked.store_file.empty())
    throw InputError({"--store", "keeps the lines of --vary", "add --vary, or leave it out"});
  if (!asked.vary.empty()) {
    if (!asked.picture_file.empty() || !asked.report_file.empty())
      throw InputError({asked.report_file.empty() ? "--picture" : "--report", "draws one run",
                        "leave out --vary, or the file"});
    return run_variants_of(asked, given);
  }
  Scenario scenario = load_scenario(asked.file, asked.overrides, shipped_catalog());
  const RunOptions options = with_section(asked, scenario, given);
  RunAnswer answer = planned_run(options, scenario);
  const RunStep step = simulated_step(options, std::move(scenario), {answer});
  const ExitCode code = step.figures.fits ? ExitCode::ok : ExitCode::does_not_fit;
  print_one(options, step, std::move(answer));
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
                  "where nodes are missing: restart waits for them, elastic restarts with fewer "
                  "replicas, replica-wise goes on without those that lost a node")
      ->check(CLI::IsMember({"restart", "elastic", "replica-wise"}))
      ->capture_default_str();
  command.add_option("--spares", options.spares, "nodes that stand by")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--least-replicas", options.least_replicas,
                  "of --policy elastic and replica-wise (default 1)")
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
  command.add_option("--local-interval", options.local_interval,
                     "copies on the drives of the job's nodes so often (default: none)");
  command
      .add_option("--incremental-share", options.incremental_share,
                  "of a checkpoint's bytes that changed and alone are written (default 1)")
      ->check(CLI::Range(1e-6, 1.0));
  command
      .add_option("--full-every", options.full_every,
                  "of so many incremental checkpoints one is whole (default 10)")
      ->check(CLI::Range(1, 1'000'000));
}

void add_price_options(CLI::App& command, RunOptions& options) {
  command.add_option("--prices", options.prices,
                     "CSV with gpu, region, date, dollars_per_hour, source; spot: kind, "
                     "interruptions_per_1000_node_days, notice, replacement");
  command.add_option("--region", options.region, "of --prices");
  command.add_option("--price-date", options.date, "the newest price of --prices by YYYY-MM-DD");
  command.add_flag("--spot", options.spot, "spot instances of --prices, with their interruptions");
  command
      .add_option("--deadline", options.deadline_days,
                  "days for --tokens: which line of --vary is the cheapest in time")
      ->check(CLI::Range(1e-3, kMostRunDays));
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
  add_price_options(*command, *options);
  command->add_option("--tokens", options->tokens, "also say when so many are trained, as 15e12")
      ->check(CLI::Range(1.0, 1e18));
  command
      ->add_option("--vary", options->vary,
                   "a line for each value instead, as spares=0,16,32; repeatable, for every "
                   "combination")
      ->allow_extra_args(false);
  command->add_option("--store", options->store_file,
                      "keep the lines of --vary in a file: the same command goes on behind them");
  command->add_option("--seeds", options->seeds, "runs with other failures (default 20)")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--seed", options->seed, "of the first run (default 1)");
  command->add_option("--picture", options->picture_file,
                      "write what the job did, day by day, as SVG (first seed)");
  command->add_option("--report", options->report_file, "write the run as an HTML page");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, command, &exit_code] {
    std::set<std::string> given;
    for (const CLI::Option* option : command->get_options())
      if (option->count() > 0) given.insert(option->get_name());
    exit_code = run_long(*options, given);
  });
}

}  // namespace tessera
