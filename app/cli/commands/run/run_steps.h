#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands/run/run_options.h"
#include "sim/longrun/run_answer.h"
#include "sim/plan/timed_program.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// The simulated steps that the variants of a run have in common.
struct RunStep {
  Scenario scenario;
  std::map<std::vector<std::string>, Seconds> states;  ///< steps of slow clusters, by settings
  TimedProgram timed;
  StepFigures figures;
  struct Writes {
    double alone = 0;                       ///< seconds; 0: not simulated yet
    std::map<std::int64_t, double> beside;  ///< seconds of a step, by bytes that it writes
  };
  mutable std::map<double, Writes> writes = {};  ///< by bandwidth of the storage; simulated once
  /// Of jobs on fewer replicas, by these and the micro-batches of each; simulated once.
  mutable std::map<std::pair<int, std::int64_t>, StepFigures> without = {};
};

/// Simulates the step, and those of the slow states that `answers` know.
RunStep simulated_step(const RunOptions& options, Scenario scenario,
                       const std::vector<RunAnswer>& answers);

/// Figures with the write of a checkpoint, and where the options have checkpoints written beside
/// training with the step beside it.
StepFigures figures_with_write(const RunOptions& options, const RunStep& step);

/// What steps take with fewer replicas, where the policy trains on with them.
void set_replica_paces(const RunOptions& options, const RunStep& step, RunAnswer& answer);

/// How much longer steps take in slow states.
void set_slowdowns(const RunStep& step, RunAnswer& answer);

}  // namespace tessera
