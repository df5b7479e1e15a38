#include "sim/remat/tessera/tessera_planner.h"

#include <algorithm>

#include "sim/remat/tessera/anneal.h"
#include "sim/remat/tessera/price_search.h"

namespace tessera::remat {
namespace {

constexpr int kRestarts = 6;
constexpr int kHybridRestarts = 3;
/// Moves per tensor and restart, within limits.
constexpr int kMovesPerTensor = 150;
constexpr int kFewestMoves = 3000;
constexpr int kMostMoves = 24'000;
constexpr int kHybridMoves = 3000;
/// Beyond this annealing with copies takes too long.
constexpr int kHybridAnnealLimit = 320;

/// Steps of the price search: graphs get fewer the larger they are.
PriceSearchOptions search_options(const Graph& graph, Effort effort) {
  const bool fast = effort == Effort::fast;
  PriceSearchOptions options;
  options.rounds = fast ? 100 : 300;
  if (graph.ops() > 20'000) {
    options.extensions = {1, 0.2};
    options.bisections = 3;
    options.updates = 12;
    options.rounds = 0;
  }
  if (graph.ops() > 200'000) {
    options.extensions = {0.2};
    options.bisections = 2;
    options.updates = 6;
  }
  return options;
}

class Planning {
 public:
  Planning(const Graph& graph, const PlanRequest& request)
      : graph_(graph), request_(request), options_(search_options(graph, request.effort)) {}

  PlannedSchedule run() {
    recompute_only();
    if (request_.link && !optimal()) with_copies();
    if (best_) return {.schedule = best_->schedule};
    PlannedSchedule planned;
    planned.note = "no plan within the budget was found";
    planned.least_peak = least_peak_;
    PlanEvaluator evaluator(graph_, request_.link, request_.budget);
    StagePlan plan = keep_all_;
    evaluator.evaluate(plan);
    planned.schedule = evaluator.schedule();
    return planned;
  }

 private:
  bool optimal() const { return best_ && best_->cost.time == graph_.base_time(); }

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
    PriceSearch search(graph_, request_.budget, std::nullopt, 0);
    take(search.recompute_only(options_));
    least_peak_ = search.least_peak();
    keep_all_ = search.keep_all_plan();
    if (request_.effort == Effort::fast) return;
    const int moves = std::clamp(kMovesPerTensor * graph_.tensors(), kFewestMoves, kMostMoves);
    const std::optional<Incumbent> start = best_;
    for (int k = 0; k < kRestarts && !optimal(); ++k) {
      AnnealOptions options{.seed = static_cast<std::uint64_t>(k + 1), .moves = moves};
      if (k % 2 == 1 && start) {
        options.start = &start->plan;
        options.first_temperature = 5e-4;
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
    for (int k = 0; k < kHybridRestarts && !optimal(); ++k) {
      const std::optional<Incumbent>& start = k == 0 ? recompute : k == 1 ? prices : best_;
      const std::optional<Incumbent> copy = start ? start : best_;
      HybridAnnealOptions options{.seed = static_cast<std::uint64_t>(k + 1),
                                  .moves = kHybridMoves,
                                  .start = copy ? &copy->plan : nullptr};
      take(anneal_hybrid(graph_, request_.budget - graph_.static_bytes(), *request_.link,
                         request_.host_bytes, options),
           request_.link);
    }
  }

  const Graph& graph_;
  const PlanRequest& request_;
  PriceSearchOptions options_;
  std::optional<Incumbent> best_;
  std::optional<ByteCount> least_peak_;
  StagePlan keep_all_;
};

}  // namespace

PlannedSchedule TesseraPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  return Planning(graph, request).run();
}

}  // namespace tessera::remat
