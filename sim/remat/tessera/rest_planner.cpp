#include "sim/remat/tessera/rest_planner.h"

#include <algorithm>

#include "sim/remat/tessera/price_search.h"

namespace tessera::remat {
namespace {

/// Operators times sweeps that a plan may take: a sweep of 10,000 operators takes 1.3 ms.
constexpr int kWork = 300'000;

PriceSearchOptions search_options(const Graph& graph) {
  const int sweeps = kWork / std::max(1, graph.ops());
  PriceSearchOptions options{.extensions = {0.2}, .bisections = 6, .updates = 6, .rounds = 0};
  if (sweeps > 100) options.extensions = {1, 0.2};
  if (sweeps > 200) options = {.extensions = {1, 0.5, 0.2, 0}, .updates = 12, .rounds = 0};
  if (sweeps > 400) options.rounds = std::min(sweeps / 20, 100);
  return options;
}

bool fits(const std::optional<Incumbent>& found) {
  return found.has_value();
}

}  // namespace

PlannedSchedule plan_rest(const Graph& graph, const PlanRequest& request) {
  const PriceSearchOptions options = search_options(graph);
  PriceSearch recompute(graph, request.budget, std::nullopt, 0);
  recompute.recompute_only(options);
  const std::optional<Incumbent>* best = &recompute.best();
  std::optional<PriceSearch> copies;
  if (request.link && !(fits(*best) && (*best)->cost.time == graph.base_time())) {
    copies.emplace(graph, request.budget, request.link, request.host_bytes);
    copies->try_all_copied();
    if (fits(*best)) {
      copies->warm((*best)->prices, {0.05, 0.3, 1});
      if (options.rounds > 0) copies->hybrid(options, &**best);
    } else {
      PriceSearchOptions short_search = options;
      short_search.extensions = {0.2};
      short_search.updates = 2;
      copies->hybrid(short_search, nullptr);
    }
    const bool better =
        fits(copies->best()) && (!fits(*best) || copies->best()->cost.time < (*best)->cost.time);
    if (better) best = &copies->best();
  }
  if (fits(*best)) return {.schedule = (*best)->schedule};
  PlannedSchedule planned{.note = "no plan within the budget was found"};
  planned.least_peak = recompute.least_peak();
  return planned;
}

}  // namespace tessera::remat
