#include "sim/remat/tessera/rest_planner.h"

#include <algorithm>
#include <limits>

#include "sim/remat/tessera/price_search.h"

namespace tessera::remat {
namespace {

/// Operators times sweeps that a plan may take: a sweep of 10,000 operators takes about 1.3 ms, one
/// with copies about three.
constexpr int kWork = 300'000;

PriceSearchOptions search_options(int sweeps) {
  // What a longer life costs decides more than further steps do: prices are tried with both.
  PriceSearchOptions options{.extensions = {1, 0.2}, .bisections = 4, .rounds = 0};
  options.updates = std::clamp(sweeps / 6, 4, 25);
  if (sweeps > 100) options.rounds = std::min(sweeps / 20, 100);
  return options;
}

const Incumbent* better(const std::optional<Incumbent>& a, const std::optional<Incumbent>& b) {
  if (!a || !b) return a ? &*a : b ? &*b : nullptr;
  return a->cost.time <= b->cost.time ? &*a : &*b;
}

/// With copies, from the result of recomputation alone.
std::optional<Incumbent> with_copies(const Graph& graph, const PlanRequest& request,
                                     const PriceSearchOptions& options, int sweeps,
                                     const std::optional<Incumbent>& recompute) {
  PriceSearch copies(graph, request.budget, request.link, request.host_bytes);
  const Incumbent* start = recompute ? &*recompute : nullptr;
  // Only the search around the best plan asks what all copies would take before it has others.
  const bool copied_last = options.rounds == 0;
  if (!copied_last) copies.try_all_copied();
  if (sweeps > 150) {
    copies.hybrid(options, start);
  } else {
    copies.short_hybrid(options, sweeps < 60 ? std::vector{0.1} : std::vector{0.05, 0.4}, start);
  }
  const Incumbent* best = better(recompute, copies.best());
  if (copied_last)
    copies.try_all_copied_last(best ? best->cost.time : std::numeric_limits<Nanoseconds>::max());
  return copies.best();
}

}  // namespace

PlannedSchedule plan_rest(const Graph& graph, const PlanRequest& request, double share) {
  const int sweeps = static_cast<int>(share * kWork) / std::max(1, graph.ops());
  const PriceSearchOptions options = search_options(sweeps);
  PriceSearch recompute(graph, request.budget, std::nullopt, 0);
  recompute.recompute_only(options);
  const bool is_free = recompute.best() && recompute.best()->cost.time == graph.base_time();
  std::optional<Incumbent> copies;
  if (request.link && !is_free)
    copies = with_copies(graph, request, options, sweeps, recompute.best());
  if (const Incumbent* best = better(recompute.best(), copies)) return {.schedule = best->schedule};
  PlannedSchedule planned{.note = "no plan within the budget was found"};
  planned.least_peak = recompute.least_peak();
  return planned;
}

}  // namespace tessera::remat
