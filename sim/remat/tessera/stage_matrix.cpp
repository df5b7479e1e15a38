#include "sim/remat/tessera/stage_matrix.h"

#include <algorithm>

namespace tessera::remat {

template <int Words>
StageMatrix<Words>::StageMatrix(const Graph& graph, ByteCount budget)
    : graph_(graph),
      budget_(budget),
      stages_(static_cast<std::size_t>(graph.ops()) + 2),
      dirty_(static_cast<std::size_t>(graph.ops()) + 2, kSeveral) {
  StageState& end = stages_.back();
  for (const TensorId q : graph.kept_tensors()) {
    end.live.add(q);
    end.live_bytes += graph.size(q);
  }
  for (Stage t = 0; t <= graph.ops(); ++t) {
    for (TensorId q = 0; q < graph.tensors() && graph.producer(q) < t; ++q) stages_[t].stay.add(q);
  }
  dirty_low_ = 0;
  dirty_high_ = graph.ops();
  settle();
  accept();
}

template <int Words>
void StageMatrix<Words>::touch(Stage t, TensorId tensor) {
  dirty_[t] = dirty_[t] == kClean || dirty_[t] == tensor ? tensor : kSeveral;
  if (dirty_high_ < dirty_low_) {
    dirty_low_ = dirty_high_ = t;
  } else {
    dirty_low_ = std::min(dirty_low_, t);
    dirty_high_ = std::max(dirty_high_, t);
  }
}

template <int Words>
void StageMatrix<Words>::set_stay(TensorId tensor, Stage from, Stage to, bool stay) {
  for (Stage t = from; t <= to; ++t) {
    if (stages_[t].stay.has(tensor) == stay) continue;
    touch(t, tensor);
    journal_.push_back({Change::stay, t, tensor});
    stages_[t].stay.flip(tensor);
  }
}

template <int Words>
void StageMatrix<Words>::set_fetch(TensorId tensor, Stage t, bool fetch) {
  if (stages_[t].fetch.has(tensor) == fetch) return;
  touch(t, kSeveral);
  journal_.push_back({Change::fetch, t, tensor});
  stages_[t].fetch.flip(tensor);
}

template <int Words>
void StageMatrix<Words>::store(Stage t, const Row& live, ByteCount bytes, ByteCount peak) {
  StageState& state = stages_[t];
  excess_ += std::max<ByteCount>(0, peak - budget_) - std::max<ByteCount>(0, state.peak - budget_);
  state.live = live;
  state.live_bytes = bytes;
  state.peak = peak;
}

namespace {

/// Walks through operators of stage `t` from the last to the first with the set of tensors that
/// live after each; an operator found to be needed always lies before the one that needs it.
template <class Row>
struct StageWalk {
  const Graph& graph;
  const Stage t;
  const Row &stay, &fetch;
  Row live, ops{}, used{};
  ByteCount bytes, peak;

  /// What makes `q`, where it is not there and does not come.
  void need(TensorId q) {
    if (graph.producer(q) < t && !stay.has(q) && !fetch.has(q)) ops.add(graph.producer(q));
  }

  void visit(OpId op) {
    ByteCount only_now = graph.workspace(op);
    ByteCount made = 0;
    for (TensorId q = graph.first_output(op); q < graph.first_output(op + 1); ++q) {
      const bool here = op < t && (stay.has(q) || fetch.has(q));
      if (!live.has(q) || here) {
        only_now += graph.size(q);
        continue;
      }
      made += graph.size(q);
      live.remove(q);
    }
    ByteCount freed = 0;
    for (const TensorId q : graph.inputs(op)) {
      used.add(q);
      if (live.has(q)) continue;
      live.add(q);
      freed += graph.size(q);
      need(q);
    }
    peak = std::max(peak, bytes + only_now + freed);
    bytes += freed - made;
  }

  /// Everything that is needed again; how long it takes.
  template <int Words>
  Nanoseconds visit_needed() {
    Nanoseconds time = 0;
    for (int w = Words - 1; w >= 0; --w) {
      std::uint64_t done = 0;
      while (const std::uint64_t rest = ops.words[w] & ~done) {
        const int bit = 63 - std::countl_zero(rest);
        done |= std::uint64_t{1} << bit;
        time += graph.time(64 * w + bit);
        visit(64 * w + bit);
      }
    }
    return time;
  }
};

/// Calls `visit` with every member of a set.
template <int Words, class Row, class Visit>
void for_each_member(const Row& row, Visit visit) {
  for (int w = 0; w < Words; ++w)
    for (std::uint64_t rest = row.words[w]; rest; rest &= rest - 1)
      visit(64 * w + std::countr_zero(rest));
}

}  // namespace

template <int Words>
void StageMatrix<Words>::decode(Stage t) {
  StageState& state = stages_[t];
  journal_.push_back({Change::decoded, t, kSeveral});
  decoded_.push_back(state);
  const StageState& after = stages_[t + 1];
  StageWalk<Row> walk{.graph = graph_,
                      .t = t,
                      .stay = state.stay,
                      .fetch = state.fetch,
                      .live = after.live,
                      .bytes = after.live_bytes,
                      .peak = after.live_bytes};
  Row absent;
  for (int w = 0; w < Words; ++w) absent.words[w] = walk.live.words[w] & ~state.stay.words[w];
  for_each_member<Words>(absent, [&](TensorId q) { walk.need(q); });
  if (t < graph_.ops()) walk.visit(t);
  const Nanoseconds time = walk.template visit_needed<Words>();
  again_time_ += time - state.time;
  state.time = time;
  state.used = walk.used;
  state.again = walk.ops;
  for (int w = 0; w < Words; ++w) {
    state.copied.words[w] = walk.live.words[w] & ~state.stay.words[w];
    walk.live.words[w] &= state.stay.words[w];
  }
  for_each_member<Words>(state.copied, [&](TensorId q) { walk.bytes -= graph_.size(q); });
  store(t, walk.live, walk.bytes, walk.peak);
}

/// Where only one tensor that the stage neither reads nor makes came or went, the stage changes by
/// its size.
template <int Words>
bool StageMatrix<Words>::shift_only(Stage t, const Row& live_after_old) {
  const StageState& after = stages_[t + 1];
  int word = -1;
  for (int w = 0; w < Words; ++w) {
    const std::uint64_t change = after.live.words[w] ^ live_after_old.words[w];
    if (!change) continue;
    if (word >= 0 || !std::has_single_bit(change)) return false;
    word = w;
  }
  if (word < 0) return false;
  const std::uint64_t change = after.live.words[word] ^ live_after_old.words[word];
  const TensorId q = 64 * word + std::countr_zero(change);
  StageState& state = stages_[t];
  const OpId maker = graph_.producer(q);
  const bool now = after.live.has(q);
  if (maker == t || (maker < t && state.again.has(maker)) || state.used.has(q)) return false;
  if (dirty_[t] != kClean && dirty_[t] != q) return false;
  if (state.live.has(q) == now || state.stay.has(q) != now || state.copied.has(q)) return false;
  shift(t, q);
  journal_.push_back({Change::shift, t, q});
  return true;
}

/// Lets `q` come to the stage or leave it; done twice, nothing has changed.
template <int Words>
void StageMatrix<Words>::shift(Stage t, TensorId q) {
  StageState& state = stages_[t];
  const ByteCount size = state.live.has(q) ? -graph_.size(q) : graph_.size(q);
  const ByteCount before = std::max<ByteCount>(0, state.peak - budget_);
  state.live.flip(q);
  state.live_bytes += size;
  state.peak += size;
  excess_ += std::max<ByteCount>(0, state.peak - budget_) - before;
}

template <int Words>
void StageMatrix<Words>::settle() {
  if (dirty_high_ < dirty_low_) return;
  Row old_after = stages_[dirty_high_ + 1].live;
  for (Stage t = dirty_high_; t >= 0; --t) {
    const bool after_changed = !(old_after == stages_[t + 1].live);
    if (t < dirty_low_ && !after_changed) break;
    const Row old_live = stages_[t].live;
    if (dirty_[t] != kClean || after_changed) {
      if (!shift_only(t, old_after)) decode(t);
      dirty_[t] = kClean;
    }
    old_after = old_live;
  }
  dirty_low_ = 0;
  dirty_high_ = -1;
}

template <int Words>
void StageMatrix<Words>::undo() {
  for (auto changed = journal_.rbegin(); changed != journal_.rend(); ++changed) {
    const auto [change, t, tensor] = *changed;
    StageState& state = stages_[t];
    if (change == Change::stay) state.stay.flip(tensor);
    if (change == Change::fetch) state.fetch.flip(tensor);
    if (change == Change::shift) shift(t, tensor);
    if (change != Change::decoded) continue;
    const StageState& old = decoded_.back();
    excess_ +=
        std::max<ByteCount>(0, old.peak - budget_) - std::max<ByteCount>(0, state.peak - budget_);
    again_time_ += old.time - state.time;
    state = old;
    decoded_.pop_back();
  }
  accept();
}

template <int Words>
Stage StageMatrix<Words>::absent_since(TensorId tensor, Stage t) const {
  Stage from = t;
  const OpId maker = graph_.producer(tensor);
  while (from - 1 > maker) {
    const StageState& before = stages_[from - 1];
    if (before.live.has(tensor) || before.used.has(tensor) || before.again.has(maker) ||
        before.copied.has(tensor))
      break;
    --from;
  }
  return from;
}

template <int Words>
void StageMatrix<Words>::write_again(StagePlan& plan) const {
  plan.again_begin.assign(static_cast<std::size_t>(graph_.ops()) + 2, 0);
  plan.again.clear();
  for (Stage t = 0; t <= graph_.ops(); ++t) {
    for_each_member<Words>(stages_[t].again, [&](OpId op) { plan.again.push_back(op); });
    plan.again_begin[t + 1] = static_cast<std::int32_t>(plan.again.size());
  }
}

namespace {

/// Runs as they open and close from stage to stage, then tensor by tensor.
class RunCollector {
 public:
  explicit RunCollector(const Graph& graph) : runs_(graph.tensors()) {}

  void open(TensorId q, Stage t, bool born, bool copied) {
    std::vector<Run>& runs = runs_[q];
    const bool first_copy = copied && std::ranges::none_of(runs, &Run::to_host);
    if (first_copy && !born) {
      runs.back().to_host = true;
      runs.back().hold_to = runs.back().last;
    }
    const Origin origin = born ? Origin::first_run : copied ? Origin::copied_in : Origin::run_again;
    runs.push_back({.first = t, .last = t, .origin = origin, .copy_from = t});
  }
  void close(TensorId q, Stage t) { runs_[q].back().last = t; }
  void write(StagePlan& plan) const {
    plan.runs.clear();
    plan.run_begin.clear();
    plan.run_count.clear();
    for (const std::vector<Run>& runs : runs_) {
      plan.run_begin.push_back(static_cast<std::int32_t>(plan.runs.size()));
      plan.run_count.push_back(static_cast<std::int32_t>(runs.size()));
      plan.runs.insert(plan.runs.end(), runs.begin(), runs.end());
    }
  }

 private:
  std::vector<std::vector<Run>> runs_;  ///< by tensor
};

}  // namespace

template <int Words>
void StageMatrix<Words>::write(StagePlan& plan) const {
  write_again(plan);
  RunCollector runs(graph_);
  Row open;
  for (Stage t = 0; t <= graph_.ops(); ++t) {
    const StageState& state = stages_[t];
    const Row& after = stages_[t + 1].live;
    Row born, opening, closing;
    if (t < graph_.ops())
      for (TensorId q = graph_.first_output(t); q < graph_.first_output(t + 1); ++q) born.add(q);
    for (int w = 0; w < Words; ++w) {
      const std::uint64_t needed = (state.used.words[w] | after.words[w]) & ~state.live.words[w];
      opening.words[w] = (born.words[w] | needed) & ~open.words[w];
      closing.words[w] = (open.words[w] | opening.words[w]) & ~after.words[w];
      open.words[w] = (open.words[w] | opening.words[w]) & after.words[w];
    }
    for_each_member<Words>(opening,
                           [&](TensorId q) { runs.open(q, t, born.has(q), state.copied.has(q)); });
    for_each_member<Words>(closing, [&](TensorId q) { runs.close(q, t); });
  }
  for_each_member<Words>(open, [&](TensorId q) { runs.close(q, graph_.ops()); });
  runs.write(plan);
}

template <int Words>
void StageMatrix<Words>::load(const StagePlan& plan) {
  for (TensorId q = 0; q < graph_.tensors(); ++q) {
    set_stay(q, graph_.producer(q) + 1, graph_.ops(), false);
    for (std::int32_t k = 0; k < plan.run_count[q]; ++k) {
      const Run& run = plan.runs[plan.run_begin[q] + k];
      set_stay(q, run.first + 1, run.last, true);
      if (run.origin == Origin::copied_in) set_fetch(q, run.first, true);
    }
  }
  settle();
  accept();
}

template class StageMatrix<2>;
template class StageMatrix<3>;
template class StageMatrix<4>;
template class StageMatrix<8>;
template class StageMatrix<16>;
template class StageMatrix<32>;

}  // namespace tessera::remat
