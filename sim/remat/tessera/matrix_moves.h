#pragma once

#include <algorithm>

#include "sim/remat/portable_math.h"
#include "sim/remat/tessera/stage_matrix.h"

namespace tessera::remat {

/// Random changes of a stage matrix: neighbours of a plan. A move that finds nothing to change
/// returns false.
template <int Words>
class MatrixMoves {
 public:
  using Matrix = StageMatrix<Words>;
  using Row = typename Matrix::Row;

  MatrixMoves(const Graph& graph, Matrix& matrix, Random& random, ByteCount budget)
      : graph_(graph), matrix_(matrix), random_(random), budget_(budget) {}

  /// Takes a tensor off the device between two uses; often where memory is short, sometimes
  /// together with inputs of its producer that lie idle there, so that cheap operators go with
  /// the one that feeds them.
  bool drop() {
    const Stage t = crowded_stage();
    const Row idle = droppable_before(t);
    const int count = idle.count();
    if (count == 0) return false;
    const TensorId q = idle.member(random_.below(count));
    drop_gap(q, t);
    if (random_.below(3) == 0)
      for (const TensorId x : graph_.inputs(graph_.producer(q)))
        if (idle.has(x) && random_.below(2) == 0) drop_gap(x, t);
    return true;
  }

  /// Lets what is regenerated somewhere stay on the device since it was there last.
  bool hold() {
    Stage t = 0;
    TensorId q = -1;
    if (!regenerated(t, q)) return false;
    Stage from = std::max<Stage>(matrix_.absent_since(q, t), graph_.producer(q) + 1);
    if (from > t) return false;
    // Sometimes only made earlier than needed, where there is more room to make it.
    if (random_.below(8) == 0) from += random_.below(t - from + 1);
    matrix_.set_stay(q, from, t, true);
    return true;
  }

  /// Holds one tensor and drops another that crosses the same stages.
  bool exchange() {
    Stage t = 0;
    TensorId q = -1;
    if (!regenerated(t, q)) return false;
    const Stage from = std::max<Stage>(matrix_.absent_since(q, t), graph_.producer(q) + 1);
    if (from > t) return false;
    const Stage at = from + random_.below(t - from + 1);
    Row idle = idle_in(at);
    if (idle.has(q)) idle.remove(q);
    const int count = idle.count();
    if (count == 0) return false;
    const TensorId other = idle.member(random_.below(count));
    matrix_.set_stay(q, from, t, true);
    drop_gap(other, at);
    return true;
  }

  /// Runs again what was fetched, or the other way round.
  bool flip_fetch() {
    Stage t = 0;
    TensorId q = -1;
    if (!regenerated(t, q)) return false;
    matrix_.set_fetch(q, t, !matrix_.stage(t).fetch.has(q));
    return true;
  }

  /// drop(), with a coin for whether what is dropped is fetched back.
  bool drop_or_swap() {
    const Stage t = crowded_stage();
    const Row idle = droppable_before(t);
    const int count = idle.count();
    if (count == 0) return false;
    const TensorId q = idle.member(random_.below(count));
    const Stage back = drop_gap(q, t);
    matrix_.set_fetch(q, back, random_.below(2) == 0);
    return true;
  }

  /// Tensors on the device through stage t that it does not read.
  Row idle_in(Stage t) const {
    Row idle = matrix_.stage(t).live;
    for (int w = 0; w < Words; ++w) idle.words[w] &= ~matrix_.stage(t).used.words[w];
    return idle;
  }

  /// Takes `q`, idle in stage t, off the device until its next use; returns the stage of that.
  Stage drop_gap(TensorId q, Stage t) {
    Stage to = t;
    while (to < graph_.ops() && !matrix_.stage(to).used.has(q)) ++to;
    Stage from = t;
    const OpId maker = graph_.producer(q);
    while (from - 1 > maker && !matrix_.stage(from - 1).used.has(q) &&
           !matrix_.stage(from - 1).again.has(maker) && matrix_.stage(from - 1).live.has(q))
      --from;
    matrix_.set_stay(q, from, to, false);
    return to;
  }

  /// Tensors on the device before stage t that may leave there. One that stage t reads may where
  /// the operator before does not touch it: it leaves after an operator that ran again, or was
  /// made too early.
  Row droppable_before(Stage t) const {
    Row row = matrix_.stage(t).live;
    if (t == 0) return row;
    const Row& used = matrix_.stage(t).used;
    for (const TensorId q : graph_.inputs(t - 1))
      if (used.has(q)) row.remove(q);
    for (TensorId q = graph_.first_output(t - 1); q < graph_.first_output(t); ++q)
      if (used.has(q)) row.remove(q);
    return row;
  }

 private:
  Stage crowded_stage() {
    Stage t = random_.below(matrix_.stages());
    if (matrix_.excess() == 0 || random_.below(2) == 0) return t;
    for (Stage k = 0; k < matrix_.stages(); ++k) {
      if (matrix_.stage(t).peak > budget_) return t;
      if (++t == matrix_.stages()) t = 0;
    }
    return t;
  }

  /// A random tensor that comes back to the device in a random stage.
  bool regenerated(Stage& t, TensorId& q) {
    for (int tries = 0; tries < 24; ++tries) {
      t = random_.below(matrix_.stages());
      const auto& stage = matrix_.stage(t);
      const int again = stage.again.count();
      const int copied = stage.copied.count();
      if (again + copied == 0) continue;
      const int pick = random_.below(again + copied);
      if (pick >= again) {
        q = stage.copied.member(pick - again);
        return true;
      }
      const OpId op = stage.again.member(pick);
      if (graph_.output_count(op) == 0) continue;
      q = graph_.first_output(op) + random_.below(graph_.output_count(op));
      return true;
    }
    return false;
  }

  const Graph& graph_;
  Matrix& matrix_;
  Random& random_;
  ByteCount budget_;
};

/// Calls `function(std::integral_constant<int, words>)` with room for `graph`, or returns its
/// default result where the graph is too large.
template <class Result, class Function>
Result with_words(const Graph& graph, Function function) {
  const int bits = std::max(graph.tensors(), graph.ops() + 1);
  if (bits <= 128) return function(std::integral_constant<int, 2>{});
  if (bits <= 192) return function(std::integral_constant<int, 3>{});
  if (bits <= 256) return function(std::integral_constant<int, 4>{});
  if (bits <= 512) return function(std::integral_constant<int, 8>{});
  return {};
}

}  // namespace tessera::remat
