#include "sim/collectives/token_exchange.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hw/units/hypergeometric.h"
#include "sim/collectives/collective_tuning.h"

namespace tessera {
namespace {

/// Places in `ranks`, by node.
std::vector<std::vector<std::size_t>> places_by_node(const Topology& topology,
                                                     std::span<const int> ranks) {
  std::map<int, std::vector<std::size_t>> nodes;
  for (std::size_t i = 0; i < ranks.size(); ++i) nodes[topology.node_of(ranks[i])].push_back(i);
  std::vector<std::vector<std::size_t>> places;
  for (auto& [node, members] : nodes) places.push_back(std::move(members));
  return places;
}

/// What a multiprocessor sends over NVLink: DeepEP's combine in bf16 on eight H100 with 4 to 16 of
/// them, rows of 4096 numbers and more (NVIDIA aiconfigurator, systems/h100_sxm, SGLang 0.5.12:
/// 16.4 to 18 GB/s each; beyond, the ports saturate at two thirds of their rate).
constexpr BytesPerSecond kOfAMultiprocessor(16.4e9);

/// Most that a rank sends to others of its node.
double bytes_inside(const Topology& topology, std::span<const Bytes> sent,
                    std::span<const int> ranks) {
  const std::size_t n = ranks.size();
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double own = 0;
    for (std::size_t j = 0; j < n; ++j)
      if (i != j && topology.node_of(ranks[i]) == topology.node_of(ranks[j]))
        own += static_cast<double>(sent[i * n + j].value());
    most = std::max(most, own);
  }
  return most;
}

/// At the pace of the multiprocessors where that is slower than the links.
void pace_by_kernels(Seconds copying, CollectiveCost& cost) {
  const Seconds transfer = cost.solo_time - cost.latency;
  if (copying <= transfer || transfer.value() <= 0) return;
  cost.bytes_per_link *= copying / transfer;
  cost.protocol_share = cost.lower_bound / copying;
  cost.solo_time = cost.latency + copying;
}

Bytes whole(double bytes) {
  return Bytes(std::llround(bytes));
}

}  // namespace

std::vector<Bytes> token_bytes(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks) {
  const std::size_t n = ranks.size();
  std::vector<Bytes> sent(n * n);
  const auto [experts, choices, multiprocessors] = call.tokens;
  const auto ranks_in_all = static_cast<double>(n);
  const double of_a_rank = static_cast<double>(experts) / ranks_in_all;
  // Tokens of one rank, of which that share arrives at each rank.
  const double all = static_cast<double>(call.bytes.value()) /
                     (ranks_in_all * chance_of_meeting(of_a_rank, experts, choices));
  const auto nodes = places_by_node(topology, ranks);
  for (const std::vector<std::size_t>& from : nodes) {
    for (const std::vector<std::size_t>& to : nodes) {
      const auto gpus = static_cast<double>(to.size());
      const bool inside = &from == &to;
      const double chance = chance_of_meeting(of_a_rank * gpus, experts, choices);
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (!inside) sent[from[i] * n + to[i % to.size()]] += whole(all * chance);
        for (std::size_t j = 0; inside && j < to.size(); ++j)
          if (i != j)
            sent[from[i] * n + to[j]] = whole(static_cast<double>(call.bytes.value()) / gpus);
      }
    }
  }
  return sent;
}

CollectiveCost token_exchange_cost(const Topology& topology, const CollectiveCall& call,
                                   std::span<const int> ranks, const CollectiveTuning& tuning) {
  if (ranks.size() < 2 || call.bytes.value() == 0) return {};
  const std::vector<Bytes> sent = token_bytes(topology, call, ranks);
  CollectiveCost cost = all_to_all_cost(topology, sent, ranks, tuning);
  cost.gpu.multiprocessors = call.tokens.multiprocessors;
  if (call.tokens.multiprocessors > 0)
    pace_by_kernels(Seconds(bytes_inside(topology, sent, ranks) /
                            (kOfAMultiprocessor.value() * call.tokens.multiprocessors)),
                    cost);
  return cost;
}

}  // namespace tessera
