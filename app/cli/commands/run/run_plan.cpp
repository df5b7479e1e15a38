#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands/run/run_options.h"
#include "app/shell/home.h"
#include "app/shell/parsed_option.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/shipped_file.h"
#include "sim/longrun/checkpoint_writes.h"
#include "sim/longrun/failure_file.h"
#include "sim/reliability/node_pool.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr double kDefaultDays = 30;
constexpr Seconds kRestartWithoutReading = Seconds(300);

Seconds seconds_after(const char* option, const std::string& text) {
  const Seconds time = parsed_option(option, text, parse_seconds);
  if (time > Seconds(kMostRunDays * 86'400))
    throw InputError({option, "is " + text, "give less than ten years"});
  return time;
}

Seconds positive_seconds_after(const char* option, const std::string& text) {
  const Seconds time = seconds_after(option, text);
  if (time.value() < 1e-6) throw InputError({option, "is " + text, "give more than 0 s"});
  return time;
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
    if (!plain && !text->empty() && (text == &options.repair || !options.failures.empty()))
      throw InputError({name, "is " + *text + ", but each failure says its own",
                        "leave it out, or use --failures-per-1000-node-days"});
}

/// The record of a whole cluster; the job and its spares are the first nodes of it.
void set_trace(const RunOptions& options, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  const int ours = plan.nodes + plan.spares;
  std::vector<RecordedFault> faults = read_fault_trace(options.fault_trace, kMostRunNodes);
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
    plan.length = std::clamp(last, days_of(1), to_micros(Seconds(kMostRunDays * 86'400)));
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
  if (!options.detection.empty())
    plan.recorded_detection = to_micros(seconds_after("--detection", options.detection));
}

void read_failure_options(const RunOptions& options, int gpus_per_node, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  if (options.per_1000_node_days >= 0) {
    plan.failures = plain_failures(options);
    answer.failures = to_text(Flops(options.per_1000_node_days));
    answer.failures.resize(answer.failures.find(' '));
    answer.failures += " per 1000 node-days";
  } else if (!options.failures.empty()) {
    plan.failures = read_failures(
        shipped_or_own_file(CatalogKind::reliability, options.failures, shipped_catalog()),
        gpus_per_node);
    answer.failures = plan.failures.name;
  } else {
    set_trace(options, answer);
  }
}

BytesPerSecond storage_bandwidth(const std::string& text) {
  const BytesPerSecond rate = parsed_option("--storage-bandwidth", text, parse_bandwidth);
  if (rate.value() < 1)
    throw InputError({"--storage-bandwidth", "is " + text, "give more than 0 B/s"});
  return rate;
}

Watch watch_of(const RunOptions& options) {
  Watch watch{.progress_steps = options.progress_steps};
  if (options.progress_steps > 0 && options.progress_steps <= 1)
    throw InputError({"--progress-steps", "is at most one step", "give more than 1, as 5"});
  if (!options.collective_timeout.empty())
    watch.collective_timeout =
        positive_seconds_after("--collective-timeout", options.collective_timeout);
  if (!options.heartbeat.empty())
    watch.heartbeat = positive_seconds_after("--heartbeat", options.heartbeat);
  if (watch.any() && !options.detection.empty())
    throw InputError({"--detection", "is " + options.detection + " beside " + text_of(watch),
                      "say how failures are noticed, or how long that takes"});
  return watch;
}

/// What the options say of times; those that need the step come later.
void set_times(const RunOptions& options, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  plan.length = std::max(Micros(1), to_micros(Seconds(answer.days * 86'400)));
  plan.interval = to_micros(positive_seconds_after("--checkpoint-interval", options.interval));
  if (!options.restart.empty())
    plan.restart = to_micros(seconds_after("--restart", options.restart));
  if (!options.memory_interval.empty())
    plan.memory_interval =
        to_micros(positive_seconds_after("--memory-interval", options.memory_interval));
  if (!options.local_interval.empty())
    plan.local_interval =
        to_micros(positive_seconds_after("--local-interval", options.local_interval));
  if (!options.checkpoint_time.empty())
    answer.cost.to_storage = seconds_after("--checkpoint-time", options.checkpoint_time);
  storage_of(options);
}

void set_local_copies(const CheckpointCost& cost, RunPlan& plan) {
  if (plan.local_interval.value() == 0) return;
  if (cost.to_drives.value() <= 0)
    throw InputError({"--local-interval", "needs drives, and the nodes have none",
                      "set cluster.node.nvme_count and cluster.node.nvme_write_bandwidth"});
  plan.local_checkpoint = to_micros(std::max(cost.to_host, cost.to_drives));
}

/// All but one of `full_every` checkpoints hold a share of the bytes.
void set_increments(const RunOptions& options, RunAnswer& answer) {
  if (options.incremental_share >= 1) return;
  RunPlan& plan = answer.plan;
  answer.incremental_share = options.incremental_share;
  plan.full_every = options.full_every;
  const auto part = [&](Micros whole) {
    return to_micros(to_seconds(whole) * options.incremental_share);
  };
  plan.increment = part(plan.checkpoint);
  plan.increment_write = part(plan.write);
}

void set_checkpoint(const RunOptions& options, CheckpointCost cost, RunAnswer& answer) {
  if (!options.checkpoint_time.empty()) {
    cost.to_storage = answer.cost.to_storage;
    cost.to_host = std::min(cost.to_host, cost.to_storage);
    cost.to_network = std::min(cost.to_network, cost.to_storage);
    cost.slowest = "as given";
  } else if (options.storage_bandwidth.empty()) {
    answer.notes.emplace_back("no --storage-bandwidth: a checkpoint takes what " + cost.slowest +
                              " takes");
  }
  RunPlan& plan = answer.plan;
  answer.cost = cost;
  answer.asynchronous = options.asynchronous;
  plan.checkpoint = to_micros(options.asynchronous ? cost.to_host : cost.total());
  if (options.asynchronous) plan.write = to_micros(cost.total());
  if (plan.memory_interval.value() > 0)
    plan.memory_checkpoint = to_micros(std::max(cost.to_host, cost.to_network));
  set_local_copies(cost, plan);
  set_increments(options, answer);
}

/// Whole steps.
Micros in_steps(Micros interval, Seconds step) {
  const double steps = std::max(1.0, std::round(to_seconds(interval) / step));
  return std::max(Micros(1), to_micros(step * steps));
}

}  // namespace

BytesPerSecond storage_of(const RunOptions& options) {
  return options.storage_bandwidth.empty() ? BytesPerSecond(0)
                                           : storage_bandwidth(options.storage_bandwidth);
}

std::optional<GpuPrice> price_of(const RunOptions& options, const std::string& gpu) {
  if (!options.prices.empty())
    return read_price(options.prices, {gpu, options.region, options.date, options.spot});
  if (options.spot || !options.region.empty() || !options.date.empty())
    throw InputError({"--prices", "is missing",
                      "name a file of prices, or leave out --spot, "
                      "--region and --price-date"});
  return std::nullopt;
}

RunAnswer planned_run(const RunOptions& options, const Scenario& scenario) {
  check_failure_options(options);
  if (scenario.step.mode == StepMode::inference)
    throw InputError({options.file, "is no training", "set training.mode=training"});
  RunAnswer answer;
  RunPlan& plan = answer.plan;
  answer.scenario = scenario.name;
  answer.gpu = scenario.cluster.node.gpu.id;
  answer.gpus = scenario.step.layout.world_size();
  answer.policy = options.policy;
  answer.first_seed = options.seed;
  answer.deadline_days = options.deadline_days;
  answer.days = options.days > 0 ? options.days : kDefaultDays;
  const int per_node = scenario.cluster.node.gpu_count;
  plan.nodes = (answer.gpus + per_node - 1) / per_node;
  plan.spares = options.spares;
  plan.repair_crews = options.repair_crews;
  set_replicas(options, scenario, answer);
  answer.watch = watch_of(options);
  set_times(options, answer);
  read_failure_options(options, per_node, answer);
  if (const auto price = price_of(options, answer.gpu); price && price->spot)
    plan.failures.classes.push_back(interruptions_of(*price));
  for (FailureClass& of : plan.failures.classes) of.stays = options.stragglers == "keep";
  return answer;
}

void finish_plan(const RunOptions& options, const Scenario& scenario, const TimedProgram& timed,
                 const StepFigures& step, RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  answer.step_time = step.step_time;
  answer.fits = step.fits;
  answer.tokens_per_s = step.tokens_per_s;
  answer.samples_per_s = step.samples_per_s;
  const BytesPerSecond storage = storage_of(options);
  set_checkpoint(
      options,
      with_simulated_write(checkpoint_cost(scenario, timed, storage), Seconds(step.write_s)),
      answer);
  if (options.asynchronous && step.with_write_s > 0)
    plan.write_slowdown = write_slowdown(answer.cost, step.step_time, Seconds(step.with_write_s));
  plan.interval = in_steps(plan.interval, step.step_time);
  if (const auto price = price_of(options, answer.gpu)) {
    answer.bill.price = price->text();
    if (price->spot)
      plan.failures.classes.back().announced = price->notice >= to_seconds(plan.checkpoint);
  }
  const Seconds restore = restore_time(scenario, answer.cost, storage);
  if (plan.full_every > 1) plan.increment_restart = to_micros(restore * options.incremental_share);
  if (!options.restart.empty()) return;
  answer.restore = restore;
  plan.restart = to_micros(kRestartWithoutReading + answer.restore);
}

void set_watch(RunAnswer& answer) {
  RunPlan& plan = answer.plan;
  if (!answer.watch.any()) return;
  for (FailureClass& of : plan.failures.classes)
    of = watched(std::move(of), answer.watch, answer.step_time);
  plan.recorded_detection = to_micros(detection_of_recorded(answer.watch, answer.step_time));
}

void check_run_size(const RunOptions& options, const RunPlan& plan) {
  constexpr double kMostEvents = 2e8, kMostCheckpoints = 5e6;
  const int nodes = plan.nodes + plan.spares;
  double events = 0;
  for (const FailureClass& of : plan.failures.classes)
    events += of.per_node_day * nodes * in_hours(plan.length) / 24 + (of.shape == 1 ? 1 : nodes);
  if (events * options.seeds > kMostEvents)
    throw InputError({options.failures.empty() ? "--failures-per-1000-node-days" : "--failures",
                      "makes " + std::to_string(static_cast<std::int64_t>(events)) +
                          " failures in each of " + std::to_string(options.seeds) + " runs",
                      "give fewer --days or --seeds"});
  Micros shortest = plan.interval;
  for (const Micros interval : {plan.memory_interval, plan.local_interval})
    if (interval.value() > 0) shortest = std::min(shortest, interval);
  if (plan.length / shortest > kMostCheckpoints)
    throw InputError({"--checkpoint-interval", "makes more than five million checkpoints",
                      "give a longer one, or fewer --days"});
}

}  // namespace tessera
