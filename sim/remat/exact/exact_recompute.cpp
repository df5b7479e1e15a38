#include <algorithm>
#include <bit>
#include <string>

#include "hw/units/input_error.h"
#include "sim/remat/exact/exact_search.h"
#include "sim/remat/exact/search_queue.h"

namespace tessera::remat {
namespace {

using Mask = std::uint32_t;

struct Progress {
  Mask ran = 0, present = 0;
  bool operator==(const Progress&) const = default;
};

struct ProgressHash {
  std::size_t operator()(const Progress& state) const {
    return mix((static_cast<std::uint64_t>(state.ran) << 32) | state.present);
  }
};

class RecomputeSearch {
 public:
  RecomputeSearch(const Graph& graph, ByteCount budget, bool any_order)
      : graph_(graph), budget_(budget - graph.static_bytes()), any_order_(any_order) {
    for (OpId op = 0; op < graph.ops(); ++op) {
      Mask inputs = 0;
      for (const TensorId q : graph.inputs(op)) inputs |= Mask{1} << q;
      inputs_.push_back(inputs);
      Mask outputs = 0;
      for (TensorId q = graph.first_output(op); q < graph.first_output(op + 1); ++q)
        outputs |= Mask{1} << q;
      outputs_.push_back(outputs);
    }
    for (const TensorId q : graph.kept_tensors()) keep_ |= Mask{1} << q;
  }

  std::optional<ExactPlan> run(std::int64_t max_states) {
    queue_.push({}, 0, graph_.base_time(), -1, 0);
    const Mask all = (Mask{1} << graph_.ops()) - 1;
    for (std::int64_t at = queue_.pop(); at >= 0; at = queue_.pop()) {
      const auto entry = queue_.entry(at);
      if (entry.state.ran == all && (entry.state.present & keep_) == keep_) return plan(at);
      expand(at, entry.state, entry.cost);
      if (queue_.states() > max_states)
        throw InputError({.where = graph_.name(),
                          .what = "needs more states than an exact search may visit",
                          .hint = "use the planner tessera"});
    }
    return std::nullopt;
  }

 private:
  ByteCount bytes(Mask present) const {
    ByteCount sum = 0;
    for (; present; present &= present - 1) sum += graph_.size(std::countr_zero(present));
    return sum;
  }

  Nanoseconds never_ran(Mask ran) const {
    Nanoseconds sum = 0;
    for (OpId op = 0; op < graph_.ops(); ++op)
      if (!(ran >> op & 1)) sum += graph_.time(op);
    return sum;
  }

  void expand(std::int64_t at, const Progress& state, Nanoseconds cost) {
    for (Mask rest = state.present; rest; rest &= rest - 1) {
      const int q = std::countr_zero(rest);
      queue_.push({state.ran, state.present & ~(Mask{1} << q)}, cost, never_ran(state.ran), at,
                  -1 - q);
    }
    const ByteCount held = bytes(state.present);
    for (OpId op = 0; op < graph_.ops(); ++op) {
      const bool again = state.ran >> op & 1;
      if (again && ((state.present & outputs_[op]) == outputs_[op] || !graph_.recomputable(op)))
        continue;
      if (!again && !any_order_ && op != std::popcount(state.ran)) continue;
      if ((state.present & inputs_[op]) != inputs_[op]) continue;
      if (held + bytes(outputs_[op]) + graph_.workspace(op) > budget_) continue;
      const Mask ran = state.ran | Mask{1} << op;
      queue_.push({ran, state.present | outputs_[op]}, cost + graph_.time(op), never_ran(ran), at,
                  op);
    }
  }

  ExactPlan plan(std::int64_t at) const {
    ExactPlan plan{.time = queue_.entry(at).cost};
    for (; queue_.entry(at).from >= 0; at = queue_.entry(at).from) {
      const std::int32_t action = queue_.entry(at).action;
      plan.schedule.push_back(action >= 0 ? Step{Action::compute, action}
                                          : Step{Action::drop, -1 - action});
    }
    std::reverse(plan.schedule.begin(), plan.schedule.end());
    if (any_order_) plan.schedule.clear();
    return plan;
  }

  const Graph& graph_;
  ByteCount budget_;
  bool any_order_;
  Mask keep_ = 0;
  std::vector<Mask> inputs_, outputs_;
  SearchQueue<Progress, ProgressHash> queue_;
};

}  // namespace

std::optional<ExactPlan> exact_recompute(const Graph& graph, ByteCount budget, bool any_order,
                                         std::int64_t max_states) {
  if (std::max(graph.ops(), graph.tensors()) > kExactRecomputeLimit)
    throw InputError({.where = graph.name(),
                      .what = "has more than " + std::to_string(kExactRecomputeLimit) +
                              " operators or tensors, too many for an exact search",
                      .hint = "use the planner tessera"});
  return RecomputeSearch(graph, budget, any_order).run(max_states);
}

}  // namespace tessera::remat
