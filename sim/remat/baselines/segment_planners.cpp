#include <algorithm>
#include <cmath>

#include "sim/remat/baselines/articulation.h"
#include "sim/remat/baselines/baselines.h"
#include "sim/remat/gap_plan.h"
#include "sim/remat/tessera/plan_evaluator.h"

namespace tessera::remat {
namespace {

constexpr int kBudgetSteps = 40;        ///< of Chen's b
constexpr double kBudgetGrowth = 1.25;  ///< from one b to the next
constexpr int kKnapsackSlots = 10'000;
constexpr int kFractions = 32;

/// Gaps of forward tensors over the start of the backward pass are run again, except for `saved`.
PlannedSchedule save_only(const Graph& graph, const PlanRequest& request,
                          const std::vector<std::uint8_t>& saved) {
  GapPlan gaps(graph);
  for (Gap& gap : gaps.gaps()) {
    const bool crosses = gap.from < graph.first_backward() && gap.to >= graph.first_backward();
    if (crosses && !saved[gap.tensor]) gap.choice = GapChoice::run_again;
  }
  StagePlan plan = gaps.decode();
  PlanEvaluator evaluator(graph, request.link, request.budget);
  const Evaluation cost = evaluator.evaluate(plan);
  PlannedSchedule planned{.schedule = evaluator.schedule()};
  if (cost.peak > request.budget) planned.least_peak = cost.peak;
  return planned;
}

/// The better of two: what fits before what does not, then the lower time or peak.
void take_better(const Graph& graph, const PlanRequest& request, PlannedSchedule candidate,
                 std::optional<PlannedSchedule>& best, Nanoseconds& best_time) {
  const ReplayResult cost = replay(graph, candidate.schedule, request.link);
  const bool fits = !candidate.least_peak;
  const bool best_fits = best && !best->least_peak;
  const bool better = !best || (fits && !best_fits) ||
                      (fits && best_fits && cost.time < best_time) ||
                      (!fits && !best_fits && *candidate.least_peak < *best->least_peak);
  if (!better) return;
  best = std::move(candidate);
  best_time = cost.time;
}

struct Item {
  TensorId tensor;
  double value;
  int weight;  ///< in slots
};

/// Forward tensors that the backward pass reads.
std::vector<Item> knapsack_items(const Graph& graph) {
  std::vector<Item> items;
  double bytes = 0;
  const OpId backward = graph.first_backward();
  for (TensorId q = 0; q < graph.tensors() && graph.producer(q) < backward; ++q) {
    const auto readers = graph.consumers(q);
    const bool read = (!readers.empty() && readers.back() >= backward) || graph.kept(q);
    if (!read) continue;
    items.push_back({q, static_cast<double>(graph.time(graph.producer(q))), 0});
    bytes += static_cast<double>(graph.size(q));
  }
  for (Item& item : items)
    item.weight = static_cast<int>(std::ceil(
        kKnapsackSlots * static_cast<double>(graph.size(item.tensor)) / std::max(bytes, 1.0)));
  return items;
}

}  // namespace

PlannedSchedule NonePlanner::plan(const Graph& graph, const PlanRequest& request) const {
  PlannedSchedule planned =
      save_only(graph, request, std::vector<std::uint8_t>(graph.tensors(), 1));
  if (planned.least_peak) planned.note = "keeping everything exceeds the budget";
  return planned;
}

PlannedSchedule ChenSqrtPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  const std::vector<TensorId> points = forward_articulation(graph);
  std::vector<std::uint8_t> saved(graph.tensors(), 0);
  const auto stride = static_cast<std::size_t>(std::ceil(std::sqrt(points.size())));
  for (std::size_t k = stride; k > 0 && k <= points.size(); k += stride) saved[points[k - 1]] = 1;
  return save_only(graph, request, saved);
}

PlannedSchedule ChenGreedyPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  const std::vector<TensorId> points = forward_articulation(graph);
  std::optional<PlannedSchedule> best;
  Nanoseconds best_time = 0;
  double limit = 1e-4 * static_cast<double>(base_peak(graph));
  for (int step = 0; step < kBudgetSteps; ++step, limit *= kBudgetGrowth) {
    std::vector<std::uint8_t> saved(graph.tensors(), 0);
    double bytes = 0;
    std::size_t next = 0;
    for (TensorId q = 0; q < graph.tensors() && next < points.size(); ++q) {
      bytes += static_cast<double>(graph.size(q));
      if (q != points[next]) continue;
      ++next;
      if (bytes <= limit) continue;
      saved[q] = 1;
      bytes = 0;
    }
    take_better(graph, request, save_only(graph, request, saved), best, best_time);
  }
  return *best;
}

PlannedSchedule KnapsackPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  const std::vector<Item> items = knapsack_items(graph);
  std::vector<double> value(kKnapsackSlots + 1, 0.0);
  std::vector<std::vector<bool>> taken(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    taken[i].assign(kKnapsackSlots + 1, false);
    for (int room = kKnapsackSlots; room >= items[i].weight; --room) {
      const double with = value[room - items[i].weight] + items[i].value;
      if (with <= value[room]) continue;
      value[room] = with;
      taken[i][room] = true;
    }
  }
  std::optional<PlannedSchedule> best;
  Nanoseconds best_time = 0;
  for (int fraction = kFractions; fraction >= 0; --fraction) {
    std::vector<std::uint8_t> saved(graph.tensors(), fraction == kFractions ? 1 : 0);
    int room = kKnapsackSlots * fraction / kFractions;
    for (std::size_t i = items.size(); i-- > 0;) {
      if (!taken[i][room]) continue;
      saved[items[i].tensor] = 1;
      room -= items[i].weight;
    }
    take_better(graph, request, save_only(graph, request, saved), best, best_time);
    if (!best->least_peak) break;
  }
  return *best;
}

}  // namespace tessera::remat
