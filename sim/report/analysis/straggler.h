#pragma once

#include <optional>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// The rank for which the others wait most.
struct Straggler {
  int rank = 0;
  Seconds waited;   ///< of all others together, on its account
  Seconds longest;  ///< of the one that waited longest on its account, all its waits together
};

/// Looks for it among all ranks, in collectives of ranks that run the same program: tensor, data
/// and the groups within them. Waits between stages are the pipeline's bubble, not a slow rank.
/// Empty where nobody waits.
///
/// Who comes last to a collective may have waited for a slow rank before: its tensor-parallel
/// peers of a slow GPU are late for their replicas too. What the last rank of a collective has
/// waited for others in its other collectives, beyond what the waiting rank did, is on the account
/// of those others.
std::optional<Straggler> find_straggler(const TimelineIndex& index);

}  // namespace tessera
