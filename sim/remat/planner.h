#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/remat/graph.h"
#include "sim/remat/schedule.h"

namespace tessera::remat {

enum class Effort : std::uint8_t { fast, thorough };

/// What a plan may use.
struct PlanRequest {
  ByteCount budget = 0;          ///< of the device, static bytes included
  std::optional<HostLink> link;  ///< nothing: no swapping
  ByteCount host_bytes = std::numeric_limits<ByteCount>::max();  ///< for all host copies
  Effort effort = Effort::thorough;
};

/// What a planner found; a schedule is always there, if only the one without any plan.
struct PlannedSchedule {
  Schedule schedule;
  std::string note;  ///< what the reader should know, for instance that a fallback was used
  /// Where the schedule exceeds the budget: the lowest peak that the planner met.
  std::optional<ByteCount> least_peak;
};

/// Makes schedules within a budget. Pure: equal inputs give equal schedules on every machine.
class Planner {
 public:
  virtual ~Planner() = default;
  virtual PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const = 0;
};

/// "tessera", "libra", and the baselines, in the order in which they are listed.
const std::vector<std::string>& planner_names();
/// Throws InputError for an unknown name.
std::unique_ptr<Planner> make_planner(std::string_view name);

/// The answer for one budget, measured by the exact replay.
struct PlanResult {
  bool feasible = false;
  Schedule schedule;
  ReplayResult cost;  ///< of `schedule`, also where it exceeds the budget
  LowerBound lower_bound;
  /// Relative distance of the time from a bound that no plan can beat, >= 0; 0 = proven optimal
  /// among plans with first executions in program order.
  double certified_gap = 0;
  Nanoseconds time_bound = 0;
  std::string note;
};

/// Plans and replays. Below the lower bound nothing is planned: `feasible` is false and `schedule`
/// is empty.
PlanResult make_plan(const Planner& planner, const Graph& graph, const PlanRequest& request);

/// How many tensors a schedule leaves alone, drops to run again, or swaps.
struct DecisionCounts {
  int kept = 0;        ///< tensors never taken off the device before their last use
  int run_again = 0;   ///< executions of operators beyond the first
  int copied_out = 0;  ///< copies to the host
  int copied_in = 0;
};
DecisionCounts count_decisions(const Graph& graph, const Schedule& schedule);

}  // namespace tessera::remat
