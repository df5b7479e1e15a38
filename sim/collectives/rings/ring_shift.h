#pragma once

#include <span>

#include "sim/collectives/collective.h"
#include "sim/collectives/collective_tuning.h"

namespace tessera {

/// Every one of `ranks` (GPU numbers of the topology) sends `bytes` to the next, the last to the
/// first: a step of a ring, as NCCL runs grouped sends and receives;
/// `copy_engines` as of CollectiveCall.
CollectiveCost ring_shift_cost(const Topology& topology, Bytes bytes, std::span<const int> ranks,
                               const CollectiveTuning& tuning, bool copy_engines = false);

}  // namespace tessera
