#include <algorithm>
#include <array>
#include <string>

#include "hw/units/input_error.h"
#include "sim/remat/exact/exact_search.h"
#include "sim/remat/exact/search_queue.h"

namespace tessera::remat {
namespace {

using ByteMask = std::uint8_t;
constexpr std::int8_t kIdle = -1;

/// What runs: an operator or the copy of a tensor, and for how long still.
struct Job {
  std::int8_t id = kIdle;
  Nanoseconds rest = 0;
  bool operator==(const Job&) const = default;
};

struct Moment {
  ByteMask ran = 0, present = 0, host = 0;
  Job op, out, in;
  bool operator==(const Moment&) const = default;
};

struct MomentHash {
  std::size_t operator()(const Moment& m) const {
    std::uint64_t key = m.ran | (m.present << 8) | (m.host << 16);
    key |= static_cast<std::uint64_t>(m.op.id & 15) << 24 |
           static_cast<std::uint64_t>(m.out.id & 15) << 28 |
           static_cast<std::uint64_t>(m.in.id & 15) << 32;
    key = mix(key);
    for (const Job& job : {m.op, m.out, m.in}) key = mix(key * 31 + job.rest);
    return key;
  }
};

bool has(ByteMask mask, int i) {
  return mask >> i & 1;
}

class SwapSearch {
 public:
  SwapSearch(const Graph& graph, ByteCount budget, const ExactSwapOptions& options)
      : graph_(graph), budget_(budget - graph.static_bytes()), options_(options) {
    for (OpId op = 0; op < graph.ops(); ++op) {
      ByteMask inputs = 0;
      for (const TensorId q : graph.inputs(op)) inputs = static_cast<ByteMask>(inputs | 1 << q);
      inputs_[op] = inputs;
      if (graph.output_count(op) != 1) refuse("has an operator that has not one output");
    }
    for (const TensorId q : graph.kept_tensors()) keep_ = static_cast<ByteMask>(keep_ | 1 << q);
  }

  std::optional<Nanoseconds> run(std::int64_t max_states) {
    push({}, 0);
    const auto all = static_cast<ByteMask>((1 << graph_.ops()) - 1);
    for (std::int64_t at = queue_.pop(); at >= 0; at = queue_.pop()) {
      const Moment state = queue_.entry(at).state;
      const Nanoseconds cost = queue_.entry(at).cost;
      if (state.ran == all && state.op.id == kIdle && (state.present & keep_) == keep_) return cost;
      expand(state, cost);
      if (queue_.states() > max_states) refuse("needs more states than an exact search may visit");
    }
    return std::nullopt;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError({.where = graph_.name(), .what = what, .hint = "use the planner tessera"});
  }

  void push(const Moment& state, Nanoseconds cost) {
    Nanoseconds estimate = state.op.id == kIdle ? 0 : state.op.rest;
    for (OpId op = 0; op < graph_.ops(); ++op)
      if (!has(state.ran, op) && op != state.op.id) estimate += graph_.time(op);
    queue_.push(state, cost, estimate, -1, 0);
  }

  ByteCount allocated(const Moment& state) const {
    ByteCount bytes = 0;
    for (int q = 0; q < graph_.tensors(); ++q)
      if (has(state.present, q)) bytes += graph_.size(q);
    if (state.op.id != kIdle) bytes += graph_.size(state.op.id) + graph_.workspace(state.op.id);
    if (state.in.id != kIdle) bytes += graph_.size(state.in.id);
    return bytes;
  }

  void expand(const Moment& state, Nanoseconds cost) {
    const ByteCount room = budget_ - allocated(state);
    for (int q = 0; q < graph_.tensors(); ++q) {
      if (has(state.present, q)) leave(state, cost, q);
      if (has(state.host, q) && !has(state.present, q)) fetch(state, cost, q, room);
    }
    if (state.op.id == kIdle)
      for (OpId op = 0; op < graph_.ops(); ++op) compute(state, cost, op, room);
    advance(state, cost);
  }

  void leave(const Moment& state, Nanoseconds cost, int q) {
    const bool read = state.op.id != kIdle && has(inputs_[state.op.id], q);
    if (!read && state.out.id != q) {
      Moment next = state;
      next.present = static_cast<ByteMask>(next.present & ~(1 << q));
      push(next, cost);
    }
    const bool busy = state.out.id != kIdle || (half() && state.in.id != kIdle);
    if (has(state.host, q) || busy) return;
    Moment next = state;
    next.out = {static_cast<std::int8_t>(q), options_.link.copy_time(graph_.size(q))};
    push(next, cost);
  }

  void fetch(const Moment& state, Nanoseconds cost, int q, ByteCount room) {
    const bool busy = state.in.id != kIdle || (half() && state.out.id != kIdle);
    if (busy || graph_.size(q) > room || state.op.id == q) return;
    Moment next = state;
    next.in = {static_cast<std::int8_t>(q), options_.link.copy_time(graph_.size(q))};
    push(next, cost);
  }

  void compute(const Moment& state, Nanoseconds cost, OpId op, ByteCount room) {
    if (has(state.present, op) || (has(state.ran, op) && !options_.recompute)) return;
    if ((state.present & inputs_[op]) != inputs_[op] || state.in.id == op) return;
    if (graph_.size(op) + graph_.workspace(op) > room) return;
    Moment next = state;
    next.op = {static_cast<std::int8_t>(op), graph_.time(op)};
    push(next, cost);
  }

  /// To the next end of anything.
  void advance(const Moment& state, Nanoseconds cost) {
    Nanoseconds step = -1;
    for (const Job& job : {state.op, state.out, state.in})
      if (job.id != kIdle && (step < 0 || job.rest < step)) step = job.rest;
    if (step < 0) return;
    Moment next = state;
    const auto ends = [&](Job& job) {
      if (job.id == kIdle) return -1;
      job.rest -= step;
      const int id = job.id;
      if (job.rest > 0) return -1;
      job = {};
      return id;
    };
    if (const int op = ends(next.op); op >= 0) {
      next.ran = static_cast<ByteMask>(next.ran | 1 << op);
      next.present = static_cast<ByteMask>(next.present | 1 << op);
    }
    if (const int q = ends(next.out); q >= 0) next.host = static_cast<ByteMask>(next.host | 1 << q);
    if (const int q = ends(next.in); q >= 0)
      next.present = static_cast<ByteMask>(next.present | 1 << q);
    push(next, cost + step);
  }

  bool half() const { return !options_.link.full_duplex; }

  const Graph& graph_;
  ByteCount budget_;
  ExactSwapOptions options_;
  ByteMask keep_ = 0;
  std::array<ByteMask, kExactSwapLimit> inputs_{};
  SearchQueue<Moment, MomentHash> queue_;
};

}  // namespace

std::optional<Nanoseconds> exact_swap(const Graph& graph, ByteCount budget,
                                      const ExactSwapOptions& options, std::int64_t max_states) {
  if (std::max(graph.ops(), graph.tensors()) > kExactSwapLimit)
    throw InputError({.where = graph.name(),
                      .what = "has more than " + std::to_string(kExactSwapLimit) +
                              " operators, too many for an exact search with swapping",
                      .hint = "use the planner tessera"});
  return SwapSearch(graph, budget, options).run(max_states);
}

}  // namespace tessera::remat
