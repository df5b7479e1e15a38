#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/shell/exit_code.h"
#include "sim/longrun/price_file.h"
#include "sim/longrun/run_answer.h"
#include "sim/plan/timed_program.h"
#include "sim/report/step_report.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// What `tessera run` was asked.
struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format;
  std::string picture_file;
  std::vector<std::string> vary;   ///< "spares=0,16"
  double days = 0;                 ///< 0: as long as the record, else 30
  double per_1000_node_days = -1;  ///< negative: not given
  std::string failures;
  std::string fault_trace;
  int trace_nodes = 0;  ///< 0: up to the highest that it names
  std::string restart, repair, detection, interval = "60min";
  std::string checkpoint_time, storage_bandwidth, memory_interval, local_interval;
  double incremental_share = 1;
  int full_every = 10;
  std::string report_file;
  std::string prices, region, date;  ///< of a file of prices
  bool spot = false;
  double deadline_days = 0;  ///< 0: none
  std::string store_file;    ///< of results of --vary; empty: none
  bool asynchronous = false;
  std::string policy = "restart";
  std::string batch = "kept";        ///< or "smaller"
  std::string stragglers = "evict";  ///< or "keep"
  std::string collective_timeout, heartbeat;
  double progress_steps = 0;  ///< 0: nobody counts
  int spares = 0;
  int repair_crews = 0;
  int least_replicas = 1;
  double tokens = 0;
  int seeds = 20;
  std::uint64_t seed = 1;
};

/// `options` with what the section `reliability` of the scenario says where the command line does
/// not: `given` names its options, as "--spares". A description of failures on the command line
/// replaces the section's, with its detection and repair.
RunOptions with_section(RunOptions options, const Scenario& scenario,
                        const std::set<std::string>& given);

/// Runs and prints; `given` as for with_section().
ExitCode run_long(const RunOptions& asked, const std::set<std::string>& given);

/// The price that the options ask for; empty: the catalog's.
std::optional<GpuPrice> price_of(const RunOptions& options, const std::string& gpu);

inline constexpr double kMostRunDays = 3660;
inline constexpr int kMostRunNodes = 1'000'000;

/// The run, but for what follows from the step: its checkpoints wait for finish_plan(). Throws
/// InputError for options that no run can follow, naming them.
RunAnswer planned_run(const RunOptions& options, const Scenario& scenario);

/// Replicas that can leave the job, and their number. Throws InputError for policies that cannot
/// go on without some.
void set_replicas(const RunOptions& options, const Scenario& scenario, RunAnswer& answer);

/// When failures are noticed, by what the options say of the watch; the slowdowns are known.
void set_watch(RunAnswer& answer);

/// Adds the step: its time, and what a checkpoint of it takes.
void finish_plan(const RunOptions& options, const Scenario& scenario, const TimedProgram& timed,
                 const StepFigures& step, RunAnswer& answer);

/// The rate of the storage that was given; 0: none.
BytesPerSecond storage_of(const RunOptions& options);

/// Dollars for an hour of a GPU, by `--prices` or the catalog, mean over the job's; 0: that of one
/// of them is not known.
double mean_gpu_price(const RunOptions& options, const Scenario& scenario);

/// Throws InputError where a run would take too many events.
void check_run_size(const RunOptions& options, const RunPlan& plan);

/// One of several runs, and how it differs.
struct RunVariant {
  std::vector<std::pair<std::string, std::string>> settings;
  RunOptions options;
};

/// Every combination of what `--vary` lists, the last varying fastest.
std::vector<RunVariant> run_variants(const RunOptions& options);

struct VariantResult {
  std::vector<std::pair<std::string, std::string>> settings;
  double goodput_share = 1;  ///< nodes of the job over all, in (0, 1]
  RunStatistics runs;
  std::optional<TokenGoal> goal;  ///< of --tokens
  double dollars_per_hour = 0;    ///< of all nodes; 0: no price

  /// Dollars until the tokens are trained; 0: not known.
  double dollars() const { return goal && goal->hours ? dollars_per_hour * goal->hours->mean : 0; }
  double goodput() const { return runs.effective_ratio.mean * goodput_share; }
};

/// `deadline_days`: what trains its tokens by then in nine of ten runs is told from the rest; 0:
/// there is none.
std::string variants_text(const std::vector<VariantResult>& results, double deadline_days);
std::string variants_json(const std::vector<VariantResult>& results, double deadline_days,
                          const std::string& version);

/// Between which values of the last axis, a number, two settings of the others change places in
/// goodput, a line each: "spares 41: policy elastic | policy restart". Linear between two values.
std::vector<std::string> break_even_points(const std::vector<VariantResult>& results);

}  // namespace tessera
