#pragma once

#include <vector>

#include "sim/remat/stage_plan.h"

namespace tessera::remat {

/// What happens to a tensor between two of its uses in the program.
enum class GapChoice : std::uint8_t { hold, run_again, swap };

/// The gap before use k of a tensor: from use k - 1, or its producer, to use k. Uses are the
/// program's readers, and the end for kept tensors.
struct Gap {
  TensorId tensor = 0;
  Stage from = 0, to = 0;
  GapChoice choice = GapChoice::hold;
};

/// One choice per gap of the program, decoded to a plan: how the baselines say what they want.
/// What runs again in a gap for an operator that runs again is held to the end of the gap.
class GapPlan {
 public:
  explicit GapPlan(const Graph& graph);

  std::vector<Gap>& gaps() { return gaps_; }
  const std::vector<Gap>& gaps() const { return gaps_; }
  /// Gaps of `tensor`: [first, last) in gaps().
  std::int32_t first_gap(TensorId tensor) const { return begin_[tensor]; }
  std::int32_t end_gap(TensorId tensor) const { return begin_[tensor + 1]; }
  /// The gap of `tensor` that use stage t ends or lies in; -1 behind the last use.
  std::int32_t gap_at(TensorId tensor, Stage t) const;
  /// Its tensor is not on the device when the rest of a step begins, and is made again from it.
  bool is_away(const Gap& gap) const {
    return graph_.gone(gap.tensor) && gap.from < graph_.done() && gap.to >= graph_.done();
  }
  StagePlan decode() const;

 private:
  void add(TensorId tensor, Stage from, Stage to);

  const Graph& graph_;
  std::vector<Gap> gaps_;
  std::vector<std::int32_t> begin_;
};

}  // namespace tessera::remat
