// `tessera run`: a training job for days on a cluster that fails.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"
#include "sim/cli/parsed_option.h"
#include "sim/config/load.h"
#include "sim/config/suggest.h"
#include "sim/engine/engine.h"
#include "sim/longrun/failure_file.h"
#include "sim/longrun/run_answer.h"
#include "sim/plan/plan.h"
#include "sim/reliability/node_pool.h"
#include "sim/reliability/spare_count.h"
#include "sim/report/metrics.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format;
  double days = 0;                 ///< 0: as long as the record, else 30
  double per_1000_node_days = -1;  ///< negative: not given
  std::string failures;
  std::string fault_trace;
  int trace_nodes = 0;  ///< 0: up to the highest that it names
  std::string restart, repair, detection, interval = "60min";
  std::string checkpoint_time, storage_bandwidth, memory_interval;
  bool asynchronous = false;
  std::string policy = "restart";
  int spares = 0;
  int repair_crews = 0;
  int least_replicas = 1;
  double tokens = 0;
  int seeds = 20;
  std::uint64_t seed = 1;
};

constexpr double kMostDays = 3660;
constexpr double kDefaultDays = 30;
constexpr int kMostNodes = 1'000'000;
constexpr Seconds kRestartWithoutReading = Seconds(300);

Seconds seconds_after(const char* option, const std::string& text) {
  const Seconds time = parsed_option(option, text, parse_seconds);
  if (time > Seconds(kMostDays * 86'400))
    throw InputError({option, "is " + text, "give less than ten years"});
  return time;
}

Seconds positive_seconds_after(const char* option, const std::string& text) {
  const Seconds time = seconds_after(option, text);
  if (time.value() < 1e-6) throw InputError({option, "is " + text, "give more than 0 s"});
  return time;
}

/// A shipped file by its name, or the user's.
fs::path failure_file(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml"))
    return name;
  const fs::path folder = home() / "configs/reliability";
  if (fs::exists(folder / (name + ".yaml"))) return folder / (name + ".yaml");
  std::vector<std::string> known;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
  std::ranges::sort(known);
  throw InputError(
      {"--failures", name + " is not in configs/reliability", suggestion(name, known)});
}

/// Failures of whole nodes at one rate, from the options.
FailureModel plain_failures(const RunOptions& options) {
  FailureClass of{.name = "node", .component = Component::host};
  of.per_node_day = options.per_1000_node_days / 1000;
  if (!options.repair.empty()) of.repair = seconds_after("--repair", options.repair);
  if (!options.detection.empty()) of.detection = seconds_after("--detection", options.detection);
  return {.name = "", .classes = {of}};
}

void check_failure_options(const RunOptions& options) {
  const int given =
      (options.per_1000_node_days >= 0) + !options.failures.empty() + !options.fault_trace.empty();
  if (given != 1)
    throw InputError({given == 0 ? "--failures-per-1000-node-days" : "--failures",
                      given == 0 ? "is missing" : "is one of several descriptions of failures",
                      "give one of --failures-per-1000-node-days 6.5, --failures FILE and "
                      "--fault-trace FILE"});
  const bool plain = options.per_1000_node_days >= 0;
  for (const auto& [name, text] :
       {std::pair("--repair", &options.repair), std::pair("--detection", &options.detection)})
    if (!plain && !text->empty())
      throw InputError({name, "is " + *text + ", but each failure says its own",
                        "leave it out, or use --failures-per-1000-node-days"});
}

/// The record of a whole cluster; the job and its spares are the first nodes of it.
void set_trace(const RunOptions& options, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  const int ours = plan.nodes + plan.spares;
  std::vector<RecordedFault> faults = read_fault_trace(options.fault_trace, kMostNodes);
  ReplayedTrace trace{.nodes = ours};
  Micros last;
  for (const RecordedFault& fault : faults) {
    trace.nodes = std::max(trace.nodes, fault.node + 1);
    last = std::max(last, fault.end);
  }
  if (options.trace_nodes > 0 && options.trace_nodes < trace.nodes)
    throw InputError({"--trace-nodes",
                      "is " + std::to_string(options.trace_nodes) +
                          ", but the record and the job have " + std::to_string(trace.nodes),
                      "give at least as many"});
  trace.nodes = std::max(trace.nodes, options.trace_nodes);
  if (options.days == 0) {
    plan.length = std::clamp(last, days_of(1), to_micros(Seconds(kMostDays * 86'400)));
    answer.days = in_hours(plan.length) / 24;
  }
  trace.length = plan.length;
  trace.time_out = recorded_time_out(faults, trace.nodes, plan.length);
  std::erase_if(faults, [&](const RecordedFault& fault) { return fault.begin >= plan.length; });
  trace.faults = faults.size();
  answer.trace = trace;
  std::erase_if(faults, [&](const RecordedFault& fault) { return fault.node >= ours; });
  answer.failures = fs::path(options.fault_trace).filename().string() + ", " +
                    std::to_string(faults.size()) + " of " + std::to_string(trace.faults) +
                    " faults";
  plan.recorded = std::move(faults);
}

void read_failure_options(const RunOptions& options, int gpus_per_node, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  if (options.per_1000_node_days >= 0) {
    plan.failures = plain_failures(options);
    answer.failures = to_text(Flops(options.per_1000_node_days));
    answer.failures.resize(answer.failures.find(' '));
    answer.failures += " per 1000 node-days";
  } else if (!options.failures.empty()) {
    plan.failures = read_failures(failure_file(options.failures), gpus_per_node);
    answer.failures = plan.failures.name;
  } else {
    set_trace(options, answer);
  }
}

/// What the job is: one simulated step, its nodes and what a checkpoint of it takes.
struct SimulatedJob {
  Scenario scenario;
  TimedProgram timed;
  StepReport step;
};

SimulatedJob simulated_job(const RunOptions& options) {
  Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  if (scenario.step.mode != StepMode::training)
    throw InputError({options.file, "is no training", "set training.mode=training"});
  const PredictorWeights weights = shipped_weights();
  TimedProgram timed = plan_step(scenario, weights);
  StepReport step = measure(timed, simulate_without_memory_samples(timed));
  return {std::move(scenario), std::move(timed), std::move(step)};
}

BytesPerSecond storage_bandwidth(const std::string& text) {
  const BytesPerSecond rate = parsed_option("--storage-bandwidth", text, parse_bandwidth);
  if (rate.value() < 1)
    throw InputError({"--storage-bandwidth", "is " + text, "give more than 0 B/s"});
  return rate;
}

void set_checkpoint(const RunOptions& options, const SimulatedJob& job, RunAnswer& answer) {
  BytesPerSecond storage;
  if (!options.storage_bandwidth.empty()) storage = storage_bandwidth(options.storage_bandwidth);
  CheckpointCost& cost = answer.cost;
  cost = checkpoint_cost(job.scenario, job.timed, storage);
  if (!options.checkpoint_time.empty()) {
    cost.to_storage = seconds_after("--checkpoint-time", options.checkpoint_time);
    cost.to_host = std::min(cost.to_host, cost.to_storage);
    cost.to_network = std::min(cost.to_network, cost.to_storage);
    cost.slowest = "as given";
  } else if (storage.value() == 0) {
    answer.notes.emplace_back("no --storage-bandwidth: a checkpoint takes what " +
                              std::string(cost.slowest) + " takes");
  }
  RunPlan& plan = answer.plan;
  answer.asynchronous = options.asynchronous;
  plan.checkpoint = to_micros(options.asynchronous ? cost.to_host : cost.total());
  if (options.asynchronous) plan.write = to_micros(cost.total());
  if (!options.memory_interval.empty()) {
    plan.memory_interval =
        to_micros(positive_seconds_after("--memory-interval", options.memory_interval));
    plan.memory_checkpoint = to_micros(std::max(cost.to_host, cost.to_network));
  }
  if (!options.restart.empty()) {
    plan.restart = to_micros(seconds_after("--restart", options.restart));
    return;
  }
  answer.restore = restore_time(job.scenario, cost, storage);
  plan.restart = to_micros(kRestartWithoutReading + answer.restore);
}

/// Whole steps.
Micros interval_of(const RunOptions& options, Seconds step) {
  const Seconds wanted = positive_seconds_after("--checkpoint-interval", options.interval);
  return to_micros(step * std::max(1.0, std::round(wanted / step)));
}

RunAnswer planned_run(const RunOptions& options, const SimulatedJob& job) {
  RunAnswer answer;
  RunPlan& plan = answer.plan;
  answer.scenario = job.scenario.name;
  answer.gpu = job.scenario.cluster.node.gpu.id;
  answer.gpus = job.step.gpus();
  answer.policy = options.policy;
  answer.step_time = job.step.step_time;
  answer.fits = job.step.memory.fits;
  answer.tokens_per_s = job.step.tokens_per_s;
  answer.first_seed = options.seed;
  answer.days = options.days > 0 ? options.days : kDefaultDays;
  const int per_node = job.scenario.cluster.node.gpu_count;
  plan.nodes = (answer.gpus + per_node - 1) / per_node;
  plan.spares = options.spares;
  plan.repair_crews = options.repair_crews;
  plan.length = std::max(Micros(1), to_micros(Seconds(answer.days * 86'400)));
  plan.interval = interval_of(options, job.step.step_time);
  plan.elastic = options.policy == "elastic";
  plan.replicas = job.step.layout.data;
  plan.least_replicas = options.least_replicas;
  if (plan.least_replicas > plan.replicas)
    throw InputError({"--least-replicas",
                      "is " + std::to_string(plan.least_replicas) + ", but the job has " +
                          std::to_string(plan.replicas),
                      "give fewer"});
  set_checkpoint(options, job, answer);
  read_failure_options(options, per_node, answer);
  return answer;
}

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
  plan.length = to_micros(Seconds(kMostDays * 86'400));
  TokenGoal goal{.tokens = options.tokens, .hours_without_failures = work.value() / 3600};
  std::vector<double> hours;
  for (const RunRecord& run : simulate_runs(plan, options.seed, options.seeds))
    if (run.work_done) hours.push_back(in_hours(run.wall));
  goal.reached = static_cast<int>(hours.size());
  if (!hours.empty()) goal.hours = figure_of(std::move(hours));
  return goal;
}

ExitCode run_long(const RunOptions& options) {
  check_failure_options(options);
  const SimulatedJob job = simulated_job(options);
  RunAnswer answer = planned_run(options, job);
  answer.runs = statistics_of(simulate_runs(answer.plan, options.seed, options.seeds));
  answer.timeline = simulate_run(answer.plan, options.seed, true).timeline;
  add_interval_advice(answer);
  add_spare_advice(answer);
  if (options.spares > 0 && !loses_nodes(answer.plan))
    answer.notes.emplace_back(
        "the spares are never used: without --repair a failed node restarts with the job");
  if (options.tokens > 0) answer.goal = token_goal(options, answer);
  if (!job.step.memory.fits)
    answer.notes.emplace_back("a step needs more memory than a GPU has (tessera simulate)");
  print(options.format == "json" ? json_text(answer, TESSERA_VERSION) : table_text(answer));
  return job.step.memory.fits ? ExitCode::ok : ExitCode::does_not_fit;
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
      ->check(CLI::Range(1, kMostNodes));
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
  command->add_option("FILE", options->file, "scenario (YAML)")->required();
  add_set_option(*command, options->overrides);
  command
      ->add_option("--days", options->days,
                   "of wall-clock time (default 30; with --fault-trace: as long as that)")
      ->check(CLI::Range(1e-3, kMostDays));
  add_failure_options(*command, *options);
  add_policy_options(*command, *options);
  command->add_option("--tokens", options->tokens, "also say when so many are trained, as 15e12")
      ->check(CLI::Range(1.0, 1e18));
  command->add_option("--seeds", options->seeds, "runs with other failures (default 20)")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--seed", options->seed, "of the first run (default 1)");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] { exit_code = run_long(*options); });
}

}  // namespace tessera
