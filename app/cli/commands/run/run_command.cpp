// `tessera run`: its options.
#include <memory>
#include <set>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/commands/run/run_options.h"
#include "app/shell/output.h"

namespace tessera {
namespace {

/// In place of detection times.
void add_watch_options(CLI::App& command, RunOptions& options) {
  command.add_option("--collective-timeout", options.collective_timeout,
                     "a collective that hangs so long ends the job, as 10min: notices every "
                     "failure");
  command.add_option("--heartbeat", options.heartbeat,
                     "a node without a sign of life for so long is dead: notices gpu, hbm, host, "
                     "power, software");
  command
      .add_option("--progress-steps", options.progress_steps,
                  "so many times the usual step without the end of one: notices every failure, "
                  "and steps slower than that")
      ->check(CLI::Range(0.0, 1e6));
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
  add_watch_options(command, options);
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
  command
      .add_option("--batch", options.batch,
                  "with fewer replicas: kept (each takes more micro-batches) or smaller (a step "
                  "trains fewer samples)")
      ->check(CLI::IsMember({"kept", "smaller"}))
      ->capture_default_str();
  command
      .add_option("--stragglers", options.stragglers,
                  "slow nodes: evict stops the job for them, keep waits for the next stop")
      ->check(CLI::IsMember({"evict", "keep"}))
      ->capture_default_str();
  command.add_option("--spares", options.spares, "nodes that stand by")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--least-replicas", options.least_replicas,
                  "of --policy elastic and replica-wise (default 1)")
      ->check(CLI::Range(1, 10'000'000));
}

void add_checkpoint_options(CLI::App& command, RunOptions& options) {
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
  add_checkpoint_options(*command, *options);
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
