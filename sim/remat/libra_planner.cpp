#include "sim/remat/libra_planner.h"

#include <algorithm>

#include "sim/remat/tessera/matrix_moves.h"
#include "sim/remat/tessera/plan_evaluator.h"
#include "sim/remat/tessera/price_search.h"

namespace tessera::remat {
namespace {

constexpr std::size_t kCandidates = 32;
constexpr int kRefinements = 4;
/// Recomputation comes first, whatever a swap costs.
constexpr double kSwapWeight = 1e6;

template <int Words>
class Refinement {
 public:
  Refinement(const Graph& graph, const PlanRequest& request)
      : graph_(graph),
        request_(request),
        budget_(request.budget - graph.static_bytes()),
        matrix_(graph, budget_),
        random_(1),
        moves_(graph, matrix_, random_, budget_),
        evaluator_(graph, request.link, request.budget) {}

  PlannedSchedule run(bool refines = true) {
    PlannedSchedule planned;
    const int most_steps = 4 * graph_.tensors() + 64;
    for (int step = 0; matrix_.excess() > 0 && step < most_steps; ++step)
      if (!relieve()) break;
    if (matrix_.excess() > 0) {
      planned.note = "single steps were stuck";
      planned.least_peak = highest().peak + graph_.static_bytes();
      if (!request_.link || !load_all_copied()) return finish(planned);
      planned.note += "; every gap is swapped on demand, then refined";
      planned.least_peak.reset();
    }
    for (int round = 0; refines && round < kRefinements && refine(); ++round) {
    }
    return finish(planned);
  }

  const StagePlan& plan() const { return plan_; }

 private:
  struct Peak {
    ByteCount peak = 0;
    Stage stage = 0;
  };

  Peak highest() const {
    Peak highest;
    for (Stage t = 0; t < matrix_.stages(); ++t)
      if (matrix_.stage(t).peak > highest.peak) highest = {matrix_.stage(t).peak, t};
    return highest;
  }

  /// Bytes per time to make them again, the larger the better.
  double worth(TensorId q) const {
    return static_cast<double>(graph_.size(q)) /
           static_cast<double>(graph_.time(graph_.producer(q)) + 1);
  }

  std::vector<TensorId> candidates(Stage stage) const {
    std::vector<TensorId> list;
    const auto idle = moves_.idle_in(stage);
    for (int k = 0, count = idle.count(); k < count; ++k)
      if (graph_.size(idle.member(k)) > 0) list.push_back(idle.member(k));
    std::stable_sort(list.begin(), list.end(),
                     [&](TensorId a, TensorId b) { return worth(a) > worth(b); });
    if (list.size() > kCandidates) list.resize(kCandidates);
    return list;
  }

  void drop(TensorId q, Stage stage, bool swap) {
    const Stage back = moves_.drop_gap(q, stage);
    matrix_.set_fetch(q, back, swap);
    matrix_.settle();
  }

  /// One greedy step at the highest peak; false where nothing is left to do.
  bool relieve() {
    const Peak before = highest();
    const ByteCount excess = matrix_.excess();
    const Nanoseconds time = matrix_.again_time();
    const std::vector<TensorId> list = candidates(before.stage);
    TensorId best = -1;
    bool best_swap = false;
    double best_score = 0;
    for (const TensorId q : list) {
      for (const bool swap : {false, true}) {
        if (swap ? !request_.link.has_value() : !graph_.recomputable(graph_.producer(q))) continue;
        drop(q, before.stage, swap);
        const ByteCount peak = highest().peak;
        const ByteCount removed = excess - matrix_.excess();
        const Nanoseconds added =
            matrix_.again_time() - time +
            (swap ? 2 * request_.link->copy_time(graph_.size(q)) : Nanoseconds{0});
        matrix_.undo();
        const bool helps = peak < before.peak || (peak == before.peak && removed > 0);
        if (!helps) continue;
        const double score = (static_cast<double>(added) + 1) /
                             static_cast<double>(std::max<ByteCount>(1, removed)) *
                             (swap ? kSwapWeight : 1);
        if (best < 0 || score < best_score) {
          best = q;
          best_swap = swap;
          best_score = score;
        }
        break;
      }
    }
    if (best >= 0) {
      drop(best, before.stage, best_swap);
      matrix_.accept();
      return true;
    }
    return request_.link && (cut_chain(before.stage) || swap_first(list, before.stage));
  }

  bool cut_chain(Stage stage) {
    TensorId largest = -1;
    const auto& again = matrix_.stage(stage).again;
    for (int k = 0, count = again.count(); k < count; ++k) {
      const OpId op = again.member(k);
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
        if (largest < 0 || graph_.size(q) > graph_.size(largest)) largest = q;
    }
    if (largest < 0) return false;
    matrix_.set_fetch(largest, stage, true);
    matrix_.settle();
    matrix_.accept();
    return true;
  }

  bool swap_first(const std::vector<TensorId>& list, Stage stage) {
    if (list.empty()) return false;
    drop(list.front(), stage, true);
    matrix_.accept();
    return true;
  }

  bool load_all_copied() {
    PriceSearch search(graph_, request_.budget, request_.link, request_.host_bytes);
    search.try_all_copied();
    if (!search.best()) return false;
    matrix_.load(search.best()->plan);
    return matrix_.excess() == 0;
  }

  Nanoseconds time() {
    matrix_.write(plan_);
    const Evaluation cost = evaluator_.evaluate(plan_);
    const bool fits = cost.peak <= request_.budget && cost.host_peak <= request_.host_bytes;
    return fits ? cost.time : std::numeric_limits<Nanoseconds>::max();
  }

  /// Holds what need not be regenerated; false where nothing changed.
  bool refine() {
    bool changed = false;
    Nanoseconds now = time();
    for (Stage t = 0; t < matrix_.stages(); ++t) {
      const auto again = matrix_.stage(t).again;
      const auto copied = matrix_.stage(t).copied;
      const auto try_hold = [&](TensorId q) {
        const Stage from = std::max<Stage>(matrix_.absent_since(q, t), graph_.producer(q) + 1);
        matrix_.set_stay(q, from, t, true);
        matrix_.settle();
        const Nanoseconds held =
            matrix_.excess() > 0 ? std::numeric_limits<Nanoseconds>::max() : time();
        if (held >= now) return matrix_.undo();
        matrix_.accept();
        now = held;
        changed = true;
      };
      for (int k = 0, count = again.count(); k < count; ++k) {
        const OpId op = again.member(k);
        for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
          try_hold(q);
      }
      for (int k = 0, count = copied.count(); k < count; ++k) try_hold(copied.member(k));
    }
    return changed;
  }

  PlannedSchedule finish(PlannedSchedule planned) {
    time();
    planned.schedule = evaluator_.schedule();
    return planned;
  }

  const Graph& graph_;
  const PlanRequest& request_;
  ByteCount budget_;
  StageMatrix<Words> matrix_;
  Random random_;
  MatrixMoves<Words> moves_;
  PlanEvaluator evaluator_;
  StagePlan plan_;
};

/// with_words(), and beyond for graphs of whole models.
template <class Result, class Function>
Result with_many_words(const Graph& graph, Function function) {
  constexpr int kFewBits = 512;
  const int bits = std::max(graph.tensors(), graph.ops() + 1);
  if (bits <= kFewBits) return with_words<Result>(graph, function);
  if (bits <= 2 * kFewBits) return function(std::integral_constant<int, 16>{});
  if (bits <= 4 * kFewBits) return function(std::integral_constant<int, 32>{});
  return {};
}

/// Graphs that a stage matrix does not take.
PlannedSchedule all_copied(const Graph& graph, const PlanRequest& request) {
  PriceSearch search(graph, request.budget, request.link, request.host_bytes);
  if (request.link) search.try_all_copied();
  PlannedSchedule planned;
  planned.note = "the graph is too large for libra's exact replays";
  if (search.best()) {
    planned.schedule = search.best()->schedule;
    planned.note += "; every gap is swapped";
    return planned;
  }
  planned.least_peak = search.least_peak();
  StagePlan plan = search.keep_all_plan();
  PlanEvaluator evaluator(graph, request.link, request.budget);
  evaluator.evaluate(plan);
  planned.schedule = evaluator.schedule();
  return planned;
}

}  // namespace

std::optional<StagePlan> greedy_refinement(const Graph& graph, const PlanRequest& request) {
  return with_words<std::optional<StagePlan>>(graph, [&](auto words) {
    Refinement<decltype(words)::value> refinement(graph, request);
    return refinement.run().least_peak ? std::nullopt : std::optional(refinement.plan());
  });
}

PlannedSchedule LibraPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  const auto planned = with_many_words<std::optional<PlannedSchedule>>(
      graph, [&](auto words) -> std::optional<PlannedSchedule> {
        return Refinement<decltype(words)::value>(graph, request).run(refines_);
      });
  return planned ? *planned : all_copied(graph, request);
}

}  // namespace tessera::remat
