#pragma once

#include <vector>

#include "sim/plan/timed_program.h"

namespace tessera {

/// Ranks that are alike for a reason that needs no look at their transfers: where all nodes of a
/// stage hold the same part of the layout behind a plain switch, exchanging two nodes in every
/// stage at once changes nothing. Then the transfers of the first node of every stage, and the
/// links of these nodes, are all there is to plan: no link of a node carries bytes that do not
/// start or end in it. Large jobs would spend more time on their plan than on their simulation
/// otherwise.
class NodeOrbits {
 public:
  explicit NodeOrbits(const TimedProgram& timed);

  bool any() const { return nodes_of_stage_ > 1; }
  /// Ranks that have to be planned, ascending: all where any() does not hold.
  const std::vector<int>& planned() const { return planned_; }
  /// Position in planned(); -1 for the others.
  int position(int rank) const {
    if (!any()) return rank;
    const int in_stage = rank % ranks_of_stage_;
    return in_stage < gpus_ ? rank / ranks_of_stage_ * gpus_ + in_stage : -1;
  }
  /// The planned rank that does what `rank` does.
  int of(int rank) const {
    if (!any()) return rank;
    const int in_stage = rank % ranks_of_stage_;
    return rank - in_stage + in_stage % gpus_;
  }
  bool is_planned(LinkId link) const {
    return !any() || link.index() / links_of_node_ % nodes_of_stage_ == 0;
  }

 private:
  int gpus_;  ///< of a node
  int ranks_of_stage_;
  int nodes_of_stage_ = 1;  ///< 1: nothing is known to be alike
  int links_of_node_;
  std::vector<int> planned_;
};

}  // namespace tessera
