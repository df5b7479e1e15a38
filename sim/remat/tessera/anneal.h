#pragma once

#include <cstdint>
#include <optional>

#include "sim/remat/stage_plan.h"

namespace tessera::remat {

/// Largest graph, in tensors and in operators, that annealing takes.
constexpr int kAnnealLimit = 512;

struct AnnealOptions {
  std::uint64_t seed = 1;
  int moves = 100'000;
  const StagePlan* start = nullptr;  ///< null: everything stays
  double first_temperature = 0.5;    ///< of the mean time of an operator
  double first_penalty = 0.5;        ///< of the mean price of a byte over the budget
};

/// Simulated annealing on the decisions "does tensor q stay across boundary t", recomputation
/// alone. `budget` is without static bytes. Nothing where no plan within the budget was met.
/// Graphs beyond kAnnealLimit give nothing.
std::optional<StagePlan> anneal(const Graph& graph, ByteCount budget, const AnnealOptions& options);

struct HybridAnnealOptions {
  std::uint64_t seed = 1;
  int moves = 3000;
  const StagePlan* start = nullptr;  ///< null: everything stays
  double first_temperature = 1e-3;   ///< of the base time
};

/// The same with a third choice, to fetch a tensor from the host, and the replayed time with all
/// copies as objective.
std::optional<StagePlan> anneal_hybrid(const Graph& graph, ByteCount budget, const HostLink& link,
                                       ByteCount host_bytes, const HybridAnnealOptions& options);

}  // namespace tessera::remat
