#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

inline constexpr double kMostRunDays = 3660;
inline constexpr int kMostRunNodes = 1'000'000;

/// The run, but for what follows from the step: its checkpoints wait for finish_plan(). Throws
/// InputError for options that no run can follow, naming them.
RunAnswer planned_run(const RunOptions& options, const Scenario& scenario);

/// Adds the step: its time, and what a checkpoint of it takes.
void finish_plan(const RunOptions& options, const Scenario& scenario, const TimedProgram& timed,
                 const StepReport& step, RunAnswer& answer);

/// Throws InputError where a run would take too many events.
void check_run_size(const RunOptions& options, const RunPlan& plan);

}  // namespace tessera
