#pragma once

#include <optional>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// The rank for which the others wait most.
struct Straggler {
  int rank = 0;
  Seconds waited;   ///< of all others together, in collectives that it joined last
  Seconds longest;  ///< of the one that waited longest for it, all its waits together
};

/// Looks at collectives of ranks that run the same program: tensor, data and the groups within
/// them. Waits between stages are the pipeline's bubble, not a slow rank. Empty where nobody waits.
std::optional<Straggler> find_straggler(const TimelineIndex& index);

}  // namespace tessera
