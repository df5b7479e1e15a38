#include "sim/engine/communication/transfer_costs.h"

#include <algorithm>

#include "sim/collectives/rings/ring_shift.h"
#include "sim/engine/folding/symmetry.h"

namespace tessera {

TransferCosts::TransferCosts(const TimedProgram& timed)
    : timed_(timed),
      tuning_(timed.collectives.tuning()),
      nodes_are_alike_(timed.topology.cluster().faults.empty()),
      links_of_node_(static_cast<int>(timed.topology.node_links(0).links().size())) {}

std::size_t TransferCosts::KeyHash::operator()(const Key& key) const {
  Color hash = key.size();
  for (const std::int64_t number : key) hash = mixed_color(hash, static_cast<Color>(number));
  return hash;
}

TransferCost TransferCosts::compute(const CollectiveCall& call, std::span<const int> ranks,
                                    bool ring_shift) const {
  CollectiveCost cost =
      ring_shift ? ring_shift_cost(timed_.topology, call.bytes, ranks, tuning_, call.copy_engines)
                 : collective_cost(timed_.topology, call, ranks, tuning_);
  TransferCost result{.latency = cost.latency,
                      .bytes_per_link = cost.bytes_per_link,
                      .solo_time = cost.solo_time,
                      .links = {},
                      .load = {}};
  if (timed_.collectives.slows_kernels) {
    result.load = load_of(cost, timed_.topology.cluster().node.gpu);
  }
  result.links = std::move(cost.links);
  return result;
}

/// Ascending, each once.
std::vector<int> TransferCosts::nodes_of(std::span<const int> ranks) const {
  std::vector<int> nodes;
  for (const int rank : ranks) {
    const int node = timed_.topology.node_of(rank);
    if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
  }
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

TransferCost TransferCosts::of(const CollectiveCall& call, std::span<const int> ranks,
                               bool ring_shift) {
  const std::vector<int> nodes = nodes_of(ranks);
  const bool plain = timed_.topology.cluster().fabric.kind == FabricKind::plain_switch;
  if (!nodes_are_alike_ || (nodes.size() > 1 && !plain)) return compute(call, ranks, ring_shift);

  // The same group on the first nodes of the cluster; renumbering keeps the order of the nodes.
  const int gpus = timed_.topology.cluster().node.gpu_count;
  std::vector<int> first_ranks;
  Key key{static_cast<int>(call.kind),
          call.bytes.value(),
          call.algorithm ? static_cast<int>(*call.algorithm) : -1,
          call.protocol ? static_cast<int>(*call.protocol) : -1,
          call.reduces_in_switch ? 1 : 0,
          call.copy_engines ? 1 : 0,
          ring_shift ? 1 : 0,
          call.tokens.experts,
          call.tokens.choices};
  for (const int rank : ranks) {
    const int node = timed_.topology.node_of(rank);
    const auto at = std::ranges::lower_bound(nodes, node) - nodes.begin();
    first_ranks.push_back(static_cast<int>(at) * gpus + rank % gpus);
    key.push_back(first_ranks.back());
  }
  auto found = known_.find(key);
  if (found == known_.end()) {
    found = known_.emplace(std::move(key), compute(call, first_ranks, ring_shift)).first;
  }
  TransferCost cost = found->second;
  for (LinkId& link : cost.links) {
    const int node = nodes[static_cast<std::size_t>(link.index() / links_of_node_)];
    link = timed_.topology.link_of_node(node, link.index() % links_of_node_);
  }
  return cost;
}

}  // namespace tessera
