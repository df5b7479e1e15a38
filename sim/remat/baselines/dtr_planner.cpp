#include <algorithm>
#include <vector>

#include "sim/remat/baselines/baselines.h"

namespace tessera::remat {
namespace {

/// Gives up beyond this multiple of the base time, as DTR's authors call thrashing.
constexpr Nanoseconds kThrash = 8;

/// Runs the program under the budget with evictions. Cost classes of evicted neighbours are a
/// union-find forest whose splits are approximated by subtraction, as published.
class OnlineRun {
 public:
  OnlineRun(const Graph& graph, ByteCount budget)
      : graph_(graph),
        budget_(budget - graph.static_bytes()),
        present_(graph.tensors(), 0),
        made_(graph.tensors(), 0),
        locks_(graph.tensors(), 0),
        last_access_(graph.tensors(), 0),
        class_of_(graph.tensors(), -1),
        uses_left_(graph.tensors(), 0) {
    for (TensorId q = 0; q < graph.tensors(); ++q)
      uses_left_[q] =
          static_cast<std::int32_t>(graph.consumers(q).size()) + (graph.kept(q) ? 1 : 0);
  }

  bool run() {
    for (OpId op = 0; op < graph_.ops(); ++op) {
      if (!execute(op)) return false;
      for (const TensorId q : graph_.inputs(op)) use(q);
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
        if (uses_left_[q] == 0) evict(q);
    }
    for (const TensorId q : graph_.kept_tensors()) {
      if (!present_[q] && !execute(graph_.producer(q))) return false;
      ++locks_[q];
    }
    return true;
  }

  Schedule take_schedule() { return std::move(schedule_); }

 private:
  void use(TensorId q) {
    if (--uses_left_[q] == 0 && present_[q] && locks_[q] == 0) evict(q);
  }

  /// Runs `op`, what it reads first; iterative, because chains may be as long as the program.
  bool execute(OpId target) {
    std::vector<OpId> stack{target};
    std::vector<std::size_t> next{0};
    while (!stack.empty()) {
      const OpId op = stack.back();
      const auto inputs = graph_.inputs(op);
      bool descended = false;
      while (next.back() < inputs.size()) {
        const TensorId q = inputs[next.back()];
        ++locks_[q];
        ++next.back();
        if (present_[q]) continue;
        if (!graph_.recomputable(graph_.producer(q))) return false;
        stack.push_back(graph_.producer(q));
        next.push_back(0);
        descended = true;
        break;
      }
      if (descended) continue;
      if (!compute(op)) return false;
      for (const TensorId q : inputs) {
        --locks_[q];
        if (uses_left_[q] == 0 && present_[q] && locks_[q] == 0) evict(q);
      }
      stack.pop_back();
      next.pop_back();
    }
    return true;
  }

  bool compute(OpId op) {
    ByteCount bytes = graph_.workspace(op);
    for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
      bytes += graph_.size(q);
      ++locks_[q];
    }
    while (live_ + bytes > budget_)
      if (!evict_cheapest()) return false;
    clock_ += graph_.time(op);
    if (clock_ > kThrash * graph_.base_time() + 1) return false;
    schedule_.push_back({Action::compute, op});
    for (const TensorId q : graph_.inputs(op)) last_access_[q] = clock_;
    for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
      --locks_[q];
      if (!present_[q]) restore(q);
      last_access_[q] = clock_;
    }
    return true;
  }

  void restore(TensorId q) {
    present_[q] = 1;
    live_ += graph_.size(q);
    if (made_[q]) costs_[root(q)] -= static_cast<double>(cost(q));
    made_[q] = 1;
    class_of_[q] = -1;
    pool_.push_back(q);
  }

  Nanoseconds cost(TensorId q) const { return graph_.time(graph_.producer(q)); }

  void evict(TensorId q) {
    schedule_.push_back({Action::drop, q});
    present_[q] = 0;
    live_ -= graph_.size(q);
    pool_.erase(std::find(pool_.begin(), pool_.end(), q));
    class_of_[q] = static_cast<std::int32_t>(parent_.size());
    parent_.push_back(class_of_[q]);
    costs_.push_back(static_cast<double>(cost(q)));
    for_evicted_neighbours(q, [&](TensorId other) { join(root(q), root(other)); });
  }

  bool evict_cheapest() {
    double best = -1;
    TensorId victim = -1;
    for (const TensorId q : pool_) {
      if (locks_[q] > 0 || graph_.size(q) == 0 || !graph_.recomputable(graph_.producer(q)))
        continue;
      const double h = score(q);
      if (victim >= 0 && h >= best) continue;
      best = h;
      victim = q;
    }
    if (victim < 0) return false;
    evict(victim);
    return true;
  }

  double score(TensorId q) {
    double sum = static_cast<double>(cost(q));
    classes_.clear();
    for_evicted_neighbours(q, [&](TensorId other) { classes_.push_back(root(other)); });
    std::sort(classes_.begin(), classes_.end());
    classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
    for (const std::int32_t entry : classes_) sum += std::max(0.0, costs_[entry]);
    const auto stale = static_cast<double>(clock_ - last_access_[q] + 1);
    return sum / (static_cast<double>(graph_.size(q)) * stale);
  }

  template <class Visit>
  void for_evicted_neighbours(TensorId q, Visit visit) {
    for (const TensorId x : graph_.inputs(graph_.producer(q)))
      if (made_[x] && !present_[x]) visit(x);
    for (const OpId reader : graph_.consumers(q))
      for (TensorId y = graph_.first_output(reader); y < graph_.first_output(reader + 1); ++y)
        if (made_[y] && !present_[y]) visit(y);
  }

  std::int32_t root(TensorId q) {
    std::int32_t at = class_of_[q];
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }

  void join(std::int32_t a, std::int32_t b) {
    if (a == b) return;
    parent_[b] = a;
    costs_[a] += costs_[b];
  }

  const Graph& graph_;
  ByteCount budget_, live_ = 0;
  std::vector<std::uint8_t> present_, made_;
  std::vector<std::int32_t> locks_;
  std::vector<Nanoseconds> last_access_;
  std::vector<std::int32_t> class_of_, parent_, classes_;
  std::vector<double> costs_;
  std::vector<std::int32_t> uses_left_;
  std::vector<TensorId> pool_;
  Nanoseconds clock_ = 0;
  Schedule schedule_;
};

}  // namespace

PlannedSchedule DtrPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  OnlineRun online(graph, request.budget);
  if (online.run()) return {.schedule = online.take_schedule()};
  PlannedSchedule planned = NonePlanner().plan(graph, request);
  planned.note = "thrashed or ran out of memory";
  return planned;
}

}  // namespace tessera::remat
