#pragma once

#include <optional>

#include "sim/remat/graph.h"
#include "sim/remat/schedule.h"

namespace tessera::remat {

/// A time that no plan of `graph` within `budget` (with static bytes) can beat, first executions in
/// program order: the Lagrangian dual of a relaxation in which every gap between two uses of a
/// tensor is either bridged by holding it, which takes memory in the stages between, or pays for
/// one run of its producer, shared among its outputs (with `link`: or for one copy back, where the
/// sum of copies bounds the time as well). `target`: the time of a known plan; steers the search
/// for multipliers, not the validity of the bound.
Nanoseconds time_bound(const Graph& graph, ByteCount budget, const std::optional<HostLink>& link,
                       Nanoseconds target);

}  // namespace tessera::remat
