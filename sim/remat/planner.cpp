#include "sim/remat/planner.h"

#include <algorithm>

#include "sim/remat/bound.h"

namespace tessera::remat {

PlanResult make_plan(const Planner& planner, const Graph& graph, const PlanRequest& request) {
  PlanResult result;
  result.lower_bound = lower_bound(graph);
  if (request.budget < result.lower_bound.bytes) return result;
  PlannedSchedule planned = planner.plan(graph, request);
  result.schedule = std::move(planned.schedule);
  result.note = std::move(planned.note);
  result.cost = replay(graph, result.schedule, request.link);
  result.feasible =
      result.cost.peak <= request.budget && result.cost.host_peak <= request.host_bytes;
  if (!result.feasible && planned.least_peak)
    result.cost.peak = std::min(result.cost.peak, *planned.least_peak);
  if (!result.feasible) return result;
  result.time_bound = time_bound(graph, request.budget, request.link, result.cost.time);
  result.certified_gap = result.time_bound > 0
                             ? static_cast<double>(result.cost.time - result.time_bound) /
                                   static_cast<double>(result.time_bound)
                             : 0;
  return result;
}

DecisionCounts count_decisions(const Graph& graph, const Schedule& schedule) {
  DecisionCounts counts;
  std::vector<std::uint8_t> ran(graph.ops(), 0);
  std::vector<std::uint8_t> moved(graph.tensors(), 0);
  for (const Step& step : schedule) {
    if (step.action == Action::copy_out) ++counts.copied_out;
    if (step.action == Action::copy_in) {
      ++counts.copied_in;
      moved[step.id] = 1;
    }
    if (step.action != Action::compute) continue;
    if (ran[step.id]) {
      ++counts.run_again;
      for (TensorId q = graph.first_output(step.id); q < graph.first_output(step.id + 1); ++q)
        moved[q] = 1;
    }
    ran[step.id] = 1;
  }
  counts.kept = static_cast<int>(std::count(moved.begin(), moved.end(), 0));
  return counts;
}

}  // namespace tessera::remat
