#include "sim/remat/tessera/tessera_planner.h"

#include <algorithm>
#include <numeric>

#include "sim/remat/libra_planner.h"
#include "sim/remat/tessera/anneal.h"
#include "sim/remat/tessera/price_search.h"

namespace tessera::remat {
namespace {

constexpr int kRestarts = 6;
constexpr int kHybridRestarts = 4;
/// Beyond this many tensors a restart of annealing costs more than it gains.
constexpr int kManyTensors = 256;
/// Moves per tensor and restart, within limits.
constexpr int kMovesPerTensor = 150;
constexpr int kFewestMoves = 3000;
constexpr int kMostMoves = 20'000;
constexpr int kHybridMoves = 3000;
/// Beyond this annealing with copies takes too long.
constexpr int kHybridAnnealLimit = 320;

/// Steps of the price search: graphs get fewer the larger they are.
PriceSearchOptions search_options(const Graph& graph, Effort effort) {
  const bool fast = effort == Effort::fast;
  PriceSearchOptions options;
  options.rounds = fast ? 100 : 300;
  if (graph.ops() > 3000) options.rounds = 120;
  if (graph.ops() > 8000) options.rounds = 30;
  if (graph.ops() > 20'000) {
    options.extensions = {0.2};
    options.bisections = 8;
    options.updates = 12;
    options.rounds = 0;
  }
  if (graph.ops() > 200'000) options.updates = 2;
  return options;
}

/// Keeps everything, and says how low the peak could be brought.
PlannedSchedule not_found(const Graph& graph, const PlanRequest& request,
                          const PriceSearch& search) {
  PlannedSchedule planned;
  planned.note = "no plan within the budget was found";
  planned.least_peak = search.least_peak();
  PlanEvaluator evaluator(graph, request.link, request.budget);
  StagePlan plan = search.keep_all_plan();
  evaluator.evaluate(plan);
  planned.schedule = evaluator.schedule();
  return planned;
}

class Planning {
 public:
  Planning(const Graph& graph, const PlanRequest& request)
      : graph_(graph), request_(request), options_(search_options(graph, request.effort)) {}

  PlannedSchedule run() {
    recompute_only();
    if (request_.link && !optimal()) with_copies();
    if (best_) return {.schedule = best_->schedule};
    return not_found(graph_, request_, *search_);
  }

 private:
  bool optimal() const { return best_ && best_->cost.time == graph_.unplanned_time(); }

  void take(const std::optional<Incumbent>& found) {
    if (found && (!best_ || found->cost.time < best_->cost.time)) best_ = found;
  }

  void take(const std::optional<StagePlan>& found, const std::optional<HostLink>& link) {
    if (!found) return;
    PlanEvaluator evaluator(graph_, link, request_.budget);
    Incumbent incumbent{.plan = *found};
    incumbent.cost = evaluator.evaluate(incumbent.plan);
    if (incumbent.cost.peak > request_.budget || incumbent.cost.host_peak > request_.host_bytes)
      return;
    incumbent.schedule = evaluator.schedule();
    if (best_) incumbent.prices = best_->prices;
    if (!best_ || incumbent.cost.time < best_->cost.time) best_ = std::move(incumbent);
  }

  void recompute_only() {
    search_.emplace(graph_, request_.budget, std::nullopt, 0);
    take(search_->recompute_only(options_));
    if (request_.effort == Effort::fast) return;
    const int moves = std::clamp(kMovesPerTensor * graph_.tensors(), kFewestMoves, kMostMoves);
    const std::optional<Incumbent> start = best_;
    const int restarts = graph_.tensors() > kManyTensors ? 2 : kRestarts;
    for (int k = 0; k < restarts && !optimal(); ++k) {
      AnnealOptions options{.seed = static_cast<std::uint64_t>(k + 1), .moves = moves};
      if (k % 2 == 1 && best_) {
        // From the price plan, or else from the first plan that annealing found.
        options.start = start ? &start->plan : &best_->plan;
        options.first_temperature = 0.08;
        options.first_penalty = 10;
      }
      take(anneal(graph_, request_.budget - graph_.static_bytes(), options), std::nullopt);
    }
  }

  void with_copies() {
    const std::optional<Incumbent> recompute = best_;
    PriceSearch search(graph_, request_.budget, request_.link, request_.host_bytes);
    search.try_all_copied();
    take(search.hybrid(options_, recompute ? &*recompute : nullptr));
    if (request_.effort == Effort::fast || graph_.tensors() > kHybridAnnealLimit) return;
    const std::optional<Incumbent> prices = search.best();
    const std::optional<StagePlan> greedy = greedy_refinement(graph_, request_);
    take(greedy, request_.link);
    for (int k = 0; k < kHybridRestarts && !optimal(); ++k) {
      const std::optional<StagePlan> best = plan_of(best_);
      std::optional<StagePlan> start = k == 0   ? plan_of(recompute)
                                       : k == 1 ? plan_of(prices)
                                       : k == 2 ? greedy
                                                : best;
      if (!start) start = best;
      HybridAnnealOptions options{.seed = static_cast<std::uint64_t>(k + 1),
                                  .moves = kHybridMoves,
                                  .start = start ? &*start : nullptr};
      take(anneal_hybrid(graph_, request_.budget - graph_.static_bytes(), *request_.link,
                         request_.host_bytes, options),
           request_.link);
    }
  }

  static std::optional<StagePlan> plan_of(const std::optional<Incumbent>& incumbent) {
    if (!incumbent) return std::nullopt;
    return incumbent->plan;
  }

  const Graph& graph_;
  const PlanRequest& request_;
  PriceSearchOptions options_;
  std::optional<Incumbent> best_;
  std::optional<PriceSearch> search_;  ///< of recomputation alone
};

}  // namespace

std::vector<PlannedSchedule> plan_budgets(const Graph& graph, const std::vector<ByteCount>& budgets,
                                          const PlanRequest& request) {
  std::vector<std::size_t> order(budgets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return budgets[a] > budgets[b]; });
  std::vector<PlannedSchedule> plans(budgets.size());
  const PriceSearchOptions options{.extensions = {0.2}, .bisections = 6, .updates = 2, .rounds = 1};
  const PriceSearchOptions second_try{.extensions = {1}, .updates = 6, .rounds = 2};
  std::optional<Prices> start;
  for (const std::size_t i : order) {
    if (budgets[i] < lower_bound(graph).bytes) continue;
    PlanRequest one = request;
    one.budget = budgets[i];
    one.effort = Effort::fast;
    PriceSearch recompute(graph, one.budget, std::nullopt, 0);
    if (start) recompute.warm(*start, {});
    recompute.recompute_only(options);
    if (!recompute.best()) recompute.recompute_only(second_try);
    PriceSearch* chosen = &recompute;
    std::optional<PriceSearch> copies;
    if (one.link) {
      copies.emplace(graph, one.budget, one.link, one.host_bytes);
      copies->try_all_copied();
      if (recompute.best())
        copies->warm(recompute.best()->prices, {0.05, 0.3});
      else
        copies->hybrid(options, nullptr);
      const bool better = copies->best() && (!recompute.best() || copies->best()->cost.time <
                                                                      recompute.best()->cost.time);
      if (better) chosen = &*copies;
    }
    if (recompute.best()) start = recompute.best()->prices;
    plans[i] = chosen->best() ? PlannedSchedule{.schedule = chosen->best()->schedule}
                              : not_found(graph, one, recompute);
  }
  return plans;
}

PlannedSchedule TesseraPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  return Planning(graph, request).run();
}

}  // namespace tessera::remat
