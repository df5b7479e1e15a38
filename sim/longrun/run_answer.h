#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/longrun/checkpoint_cost.h"
#include "sim/longrun/detection.h"
#include "sim/longrun/replica_pace.h"
#include "sim/reliability/checkpoint_interval.h"
#include "sim/reliability/run_statistics.h"
#include "sim/report/step_report.h"

namespace tessera {

/// Intervals between checkpoints for the job's mean time to failure.
struct IntervalAdvice {
  Seconds mean_time_to_failure;  ///< that the rates say
  Seconds young, daly;
  std::optional<BestInterval> best;  ///< of those that were simulated
};

/// Runs until a number of tokens is trained.
struct TokenGoal {
  double tokens = 0;
  int reached = 0;                  ///< runs that got there within the longest time
  std::optional<SeedFigure> hours;  ///< of these
  double hours_without_failures = 0;
};

/// Nodes out for repair, where enough crews repair.
struct SpareAdvice {
  double mean_out = 0;
  int spares = 0;  ///< with which no node is missing for 99 % of the time; -1: more than nodes
};

/// A record of faults by itself, whatever the job.
struct ReplayedTrace {
  int nodes = 0;
  std::size_t faults = 0;  ///< that began within the run
  Micros length;
  Micros time_out;  ///< summed over the nodes

  /// Share of the nodes' time in service, in [0, 1].
  double availability() const { return 1 - time_out / (length * std::int64_t{nodes}); }
};

/// Of nodes and racks, as StepEnergy has them; 0: not known.
struct RunPower {
  bool host_is_confirmed = true;  ///< false: the nodes' host_power is recalled or inferred
  bool has_hosts = false;         ///< host_power is described
  Watts node_mean, node_peak, rack_mean, rack_peak;
};

/// What the run draws and costs, mean over the seeds, spares included.
struct RunBill {
  std::optional<double> energy_mwh;  ///< of the site (`pue`); empty: the board power is not known
  std::optional<double> dollars;     ///< by the GPUs' price; empty: there is none
  std::string price;                 ///< where it comes from; empty: the catalog
  RunPower power;                    ///< while the job trains
};

/// What a long run knows of the simulated step.
struct StepFigures {
  Seconds step_time;
  double tokens_per_s = 0;  ///< 0: the model has none
  double samples_per_s = 0;
  bool fits = true;         ///< into the GPUs' memory
  double facility_j = -1;   ///< energy of the site; negative: not known
  Watts idle;               ///< of the job's nodes while nothing runs, without `pue`
  RunPower power = {};      ///< while the job trains
  double write_s = 0;       ///< of a checkpoint's write from the hosts on; 0: not simulated
  double with_write_s = 0;  ///< time of a step beside a checkpoint's write; 0: not simulated
};
StepFigures figures_of(const StepReport& report);

/// Training at the power of `step`, the rest of the time and the spares idle; every GPU is paid for
/// all the time, at `price` dollars an hour (0: not known).
RunBill run_bill(const ClusterSpec& cluster, const StepFigures& step, const RunPlan& plan,
                 const RunStatistics& runs, double price);

/// What `tessera run` says.
struct RunAnswer {
  std::string scenario;
  std::string gpu;
  int gpus = 0;
  double days = 0;
  std::uint64_t first_seed = 1;
  std::string policy;                       ///< "restart", "elastic" or "replica-wise"
  BatchWithout batch = BatchWithout::kept;  ///< of the last two, while replicas are missing
  int replicas = 1;                         ///< data-parallel ones
  int replicas_together = 1;                ///< that can only leave together
  std::int64_t global_batch = 0;            ///< samples of a step
  std::int64_t micro_batches = 0;           ///< of a replica
  std::vector<StepWithout> without;         ///< steps with fewer replicas that were simulated
  Watch watch;
  std::string failures;  ///< where the rates come from
  Seconds step_time;
  double tokens_per_s = 0;  ///< while it trains; 0: the model has none
  double samples_per_s = 0;
  bool fits = true;  ///< a step into the GPUs' memory
  RunPlan plan;
  CheckpointCost cost;
  bool asynchronous = false;
  double incremental_share = 1;  ///< of a checkpoint's bytes that one but every `full_every` writes
  Seconds restore;  ///< what of a restart is reading the checkpoint; 0 where `--restart` says all
  std::optional<IntervalAdvice> intervals;
  std::optional<SpareAdvice> spares;
  std::optional<TokenGoal> goal;
  double deadline_days = 0;  ///< of the goal; 0: none
  std::optional<ReplayedTrace> trace;
  RunStatistics runs;
  RunBill bill;
  std::vector<ActivitySpan> timeline;  ///< of the first seed
  std::vector<std::string> notes;

  /// Whether nine of ten runs reach the goal by the deadline.
  bool in_time() const {
    return goal && goal->hours && goal->reached == runs.seeds &&
           goal->hours->high <= deadline_days * 24;
  }
  /// Samples of a step with `left` replicas.
  std::int64_t samples_with(int left) const {
    return batch == BatchWithout::kept ? global_batch : global_batch / replicas * left;
  }
  /// Share of what all nodes, spares included, could do, in [0, 1].
  double goodput_share() const {
    return static_cast<double>(plan.nodes) / (plan.nodes + plan.spares);
  }
};

/// `timeline` with checkpoints as part of the training around them, neighbours of one kind joined.
std::vector<ActivitySpan> joined_spans(const std::vector<ActivitySpan>& timeline);

/// At most 80 columns wide.
std::string table_text(const RunAnswer& answer);
std::string json_text(const RunAnswer& answer, const std::string& version);

/// A line per day (or several days, at most 31 lines) of 48 letters: what the job did for most of
/// each.
std::string timeline_text(const std::vector<ActivitySpan>& timeline);

}  // namespace tessera
