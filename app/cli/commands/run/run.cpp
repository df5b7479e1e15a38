// What `tessera run` does: a training job for days on a cluster that fails.
#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands/run/run_options.h"
#include "app/cli/commands/run/run_steps.h"
#include "app/cli/commands/run/run_store.h"
#include "app/html/run_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "hw/units/formatted.h"
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

void add_notes(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  if (options.spares > 0 && !loses_nodes(answer.plan))
    answer.notes.emplace_back("the spares are never used: without --repair a failed node restarts");
  if (answer.plan.length <= answer.plan.interval)
    answer.notes.emplace_back("the run is over before its first checkpoint");
  if (!step.figures.fits)
    answer.notes.emplace_back("a step needs more memory than a GPU has (tessera simulate)");
}

void add_plan_of_step(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  finish_plan(options, step.scenario, step.timed, figures_with_write(options, step), answer);
  check_run_size(options, answer.plan);
  set_slowdowns(step, answer);
  set_watch(answer);
  set_replica_paces(options, step, answer);
}

void add_bill(const RunOptions& options, const RunStep& step, RunAnswer& answer) {
  const auto price = price_of(options, answer.gpu);
  answer.bill = run_bill(step.scenario.cluster, step.figures, answer.plan, answer.runs,
                         mean_gpu_price(options, step.scenario));
  if (price) answer.bill.price = price->text();
}

ExitCode print_one(const RunOptions& options, const RunStep& step, RunAnswer answer) {
  add_plan_of_step(options, step, answer);
  answer.runs = statistics_of(simulate_runs(answer.plan, options.seed, options.seeds));
  add_bill(options, step, answer);
  answer.timeline = simulate_run(answer.plan, options.seed, true).timeline;
  add_interval_advice(answer);
  add_spare_advice(answer);
  if (options.tokens > 0) answer.goal = token_goal(options, answer);
  add_notes(options, step, answer);
  if (!options.picture_file.empty())
    write_output_file(options.picture_file,
                      timeline_picture(answer.scenario + ", first seed", answer.timeline));
  if (!options.report_file.empty())
    write_output_file(options.report_file, run_page(answer, TESSERA_VERSION));
  print(options.format == "json" ? json_text(answer, TESSERA_VERSION)
                                 : for_people(table_text(answer)));
  return answer.fits ? ExitCode::ok : ExitCode::does_not_fit;
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

/// "runs, best goodput 90.8 %": what a line of progress says.
std::string best_text(const std::vector<VariantResult>& results) {
  if (results.empty()) return "runs";
  return formatted("runs, best goodput %.2f %%",
                   100 * std::ranges::max(results, {}, &VariantResult::goodput).goodput());
}

ExitCode run_variants_of(RunOptions asked, const std::set<std::string>& given) {
  const std::vector<std::string> named = take_scenarios(asked);
  RunStore store(asked.store_file);
  StatusLine status;
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
      status.show(results.size(), files.size() * variants.size(), best_text(results));
      if (!named.empty())
        variants[i].settings.emplace(variants[i].settings.begin(), "scenario", step.scenario.name);
      results.push_back(result_of(variants[i], step, answers[i], store));
      if (!answers[i].fits) code = ExitCode::does_not_fit;
    }
  }
  print(asked.format == "json" ? variants_json(results, asked.deadline_days, TESSERA_VERSION)
                               : for_people(variants_text(results, asked.deadline_days)));
  return code;
}

/// Options of jobs on fewer replicas, where no policy has any.
void check_used(const RunOptions& options, const std::set<std::string>& given) {
  if (options.policy != "restart") return;
  for (const char* option : {"--batch", "--least-replicas"})
    if (given.contains(option))
      throw InputError({option, "has no effect on --policy restart, which always has all replicas",
                        "leave it out, or use --policy elastic or replica-wise"});
}

}  // namespace

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
  check_used(options, given);
  RunAnswer answer = planned_run(options, scenario);
  const RunStep step = simulated_step(options, std::move(scenario), {answer});
  return print_one(options, step, std::move(answer));
}

}  // namespace tessera
