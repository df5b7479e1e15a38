#pragma once

#include <cstdint>
#include <optional>

#include "sim/remat/graph.h"
#include "sim/remat/schedule.h"

namespace tessera::remat {

/// Largest graph, in operators and in tensors, that the searches take.
constexpr int kExactRecomputeLimit = 20;
constexpr int kExactSwapLimit = 8;

struct ExactPlan {
  Nanoseconds time = 0;
  Schedule schedule;  ///< of exact_recompute in program order only
};

/// The fastest plan of recomputation alone within `budget` (with static bytes), by A* over pairs of
/// (operators run, tensors present); the estimate is the time of what never ran. `any_order` lets
/// first executions leave program order. Nothing where no plan exists. Throws InputError for
/// graphs beyond the limit, and where more than `max_states` states were not enough.
std::optional<ExactPlan> exact_recompute(const Graph& graph, ByteCount budget, bool any_order,
                                         std::int64_t max_states = 20'000'000);

struct ExactSwapOptions {
  bool recompute = true;  ///< false: swapping alone
  HostLink link;
};

/// The least time with swapping, first executions in any order: search over events, where whatever
/// starts does so when something ends. Host memory is unlimited. Schedules are not returned.
std::optional<Nanoseconds> exact_swap(const Graph& graph, ByteCount budget,
                                      const ExactSwapOptions& options,
                                      std::int64_t max_states = 20'000'000);

}  // namespace tessera::remat
