#pragma once

#include <map>
#include <optional>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// The rank for which the others wait most.
struct Straggler {
  int rank = 0;
  Seconds waited;   ///< of all others together, in collectives that it joined last
  Seconds longest;  ///< of the one that waited longest for it, all its waits together
};

/// Looks for it, rank by rank, in collectives of ranks that run the same program: tensor, data and
/// the groups within them. Waits between stages are the pipeline's bubble, not a slow rank.
class StragglerSearch {
 public:
  /// The waits of a rank that stands for `stands_for`.
  void add(const TimelineIndex& index, int rank, int stands_for);
  /// Empty where nobody waits.
  std::optional<Straggler> worst() const;

 private:
  struct Waits {
    Seconds sum;
    Seconds longest;
  };
  std::map<int, Waits> by_last_;  ///< by the rank that came last
};

/// Among all ranks.
std::optional<Straggler> find_straggler(const TimelineIndex& index);

}  // namespace tessera
