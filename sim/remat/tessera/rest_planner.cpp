#include "sim/remat/tessera/rest_planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/remat/baselines/baselines.h"
#include "sim/remat/tessera/price_search.h"

namespace tessera::remat {
namespace {

/// Operators times sweeps that a plan may take: a sweep of 10,000 operators takes about 1.3 ms, one
/// with copies about three.
constexpr int kSweepWork = 300'000;

/// Operators times plans that are looked at where peaks are relieved, likewise; one takes less.
constexpr int kPeakSweepWork = 100'000;

PriceSearchOptions search_options(int sweeps) {
  // What a longer life costs decides more than further steps do: prices are tried with both.
  PriceSearchOptions options{.extensions = {1, 0.2}, .bisections = 4, .rounds = 0};
  options.updates = std::clamp(sweeps / 6, 4, 25);
  if (sweeps > 100) options.rounds = std::min(sweeps / 20, 100);
  return options;
}

/// With copies, from the result of recomputation alone, in few sweeps by the same search: plans
/// that are no faster than that are not looked at closely.
void try_copies(PriceSearch& search, const PriceSearchOptions& options, int sweeps) {
  const std::optional<Incumbent> recompute = search.best();
  search.short_hybrid(options, sweeps < 60 ? std::vector{0.1} : std::vector{0.05, 0.4},
                      recompute ? &*recompute : nullptr);
  search.try_all_copied_last();
}

/// Likewise in as many sweeps as a search around the best plan with copies takes, of which a plan
/// without is none.
std::optional<Incumbent> search_copies(const Graph& graph, const PlanRequest& request,
                                       const PriceSearchOptions& options, int sweeps,
                                       const std::optional<Incumbent>& recompute) {
  PriceSearch copies(graph, request.budget, request.link, request.host_bytes);
  const Incumbent* start = recompute ? &*recompute : nullptr;
  copies.try_all_copied();
  if (sweeps > 150) {
    copies.hybrid(options, start);
  } else {
    copies.short_hybrid(options, {0.05, 0.4}, start);
  }
  const std::optional<Incumbent>& best = copies.best();
  return best && (!recompute || best->cost.time < recompute->cost.time) ? best : recompute;
}

/// Peak by peak, as Capuchin does. Equal prices take all tensors of a kind or none; this takes as
/// many as lack.
void relieve_peaks(const Graph& graph, const PlanRequest& request, PlannedSchedule& best,
                   Nanoseconds& time) {
  const int most = std::clamp(kPeakSweepWork / std::max(1, graph.ops()), 2, 40);
  Schedule schedule = CapuchinPlanner(most).plan(graph, request).schedule;
  const ReplayResult cost = replay(graph, schedule, request.link);
  const bool fits = cost.peak <= request.budget && cost.host_peak <= request.host_bytes;
  if (!fits || cost.time >= time) return;
  best = {.schedule = std::move(schedule)};
  time = cost.time;
}

/// By prices alone.
std::optional<Incumbent> search_prices(const Graph& graph, const PlanRequest& request, double share,
                                       ByteCount& least_peak) {
  const int sweeps = static_cast<int>(share * kSweepWork) / std::max(1, graph.ops());
  const PriceSearchOptions options = search_options(sweeps);
  const bool is_short = options.rounds == 0;
  PriceSearch search(graph, request.budget, is_short ? request.link : std::nullopt,
                     request.host_bytes);
  search.recompute_only(options);
  least_peak = search.least_peak();
  const bool is_free = search.best() && search.best()->cost.time == graph.unplanned_time();
  const bool copies = request.link && !is_free;
  if (copies && is_short) try_copies(search, options, sweeps);
  if (copies && !is_short) return search_copies(graph, request, options, sweeps, search.best());
  return search.best();
}

PlannedSchedule planned(const std::optional<Incumbent>& found, ByteCount least_peak) {
  if (found) return {.schedule = found->schedule};
  return {.schedule = {}, .note = "no plan within the budget was found", .least_peak = least_peak};
}

}  // namespace

PlannedSchedule plan_by_prices(const Graph& graph, const PlanRequest& request, double share) {
  ByteCount least_peak = 0;
  const std::optional<Incumbent> best = search_prices(graph, request, share, least_peak);
  return planned(best, least_peak);
}

PlannedSchedule plan_rest(const Graph& graph, const PlanRequest& request) {
  ByteCount least_peak = 0;
  const std::optional<Incumbent> priced = search_prices(graph, request, 1, least_peak);
  PlannedSchedule best = planned(priced, least_peak);
  Nanoseconds time = priced ? priced->cost.time : std::numeric_limits<Nanoseconds>::max();
  PlanRequest without_copies = request;
  without_copies.link.reset();
  if (time > graph.unplanned_time()) relieve_peaks(graph, without_copies, best, time);
  if (request.link && time > graph.unplanned_time()) relieve_peaks(graph, request, best, time);
  return best;
}

}  // namespace tessera::remat
