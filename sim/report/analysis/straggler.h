#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// The rank for which the others wait most.
struct Straggler {
  int rank = 0;
  Seconds waited;   ///< of all others together, on its account
  Seconds longest;  ///< of the one that waited longest on its account, all its waits together
};

/// Looks for it, rank by rank, in collectives of ranks that run the same program: tensor, data and
/// the groups within them. Waits between stages are the pipeline's bubble, not a slow rank.
///
/// Who comes last to a collective may have waited for a slow rank before: its tensor-parallel
/// peers of a slow GPU are late for their replicas too. What the last rank of a collective has
/// waited for others in its other collectives, beyond what the waiting rank did, is on the account
/// of those others.
class StragglerSearch {
 public:
  /// The waits of a rank that stands for `stands_for`.
  void add(const TimelineIndex& index, int rank, int stands_for);
  /// Empty where nobody waits.
  std::optional<Straggler> worst() const;

 private:
  using Waits = std::map<int, Seconds>;  ///< by the rank that is waited for
  struct Rank {
    int stands_for = 1;
    Waits waits;
  };
  using Ranks = std::map<int, Rank>;

  static Waits on_account(const Ranks& ranks, int rank);

  Ranks ranks_;  ///< by the rank that waits
};

/// Among all ranks.
std::optional<Straggler> find_straggler(const TimelineIndex& index);

}  // namespace tessera
