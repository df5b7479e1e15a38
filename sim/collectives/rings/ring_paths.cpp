#include "sim/collectives/rings/ring_paths.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>

#include "sim/collectives/link_sums.h"
#include "sim/collectives/rings/ring_search.h"

namespace tessera {
namespace {

using GpuGroup = std::vector<int>;

/// NCCL runs two channels at half a lane's rate each, which lets odd numbers of lanes balance.
constexpr int kChannelsPerLane = 2;

template <class Visit>
void for_each_hop(const GpuGroup& ring, Visit visit) {
  for (std::size_t i = 0; i < ring.size(); ++i) visit(ring[i], ring[(i + 1) % ring.size()]);
}

/// Bundles that `faults` left in both directions: NCCL's rings go round the others.
LaneMatrix lanes_between(const Topology& topology, const GpuGroup& gpus) {
  const int count = static_cast<int>(gpus.size());
  LaneMatrix lanes(count);
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      const int one = gpus[static_cast<std::size_t>(a)];
      const int other = gpus[static_cast<std::size_t>(b)];
      const LinkId bundle = topology.nvlink_bundle(one, other);
      const bool whole = bundle.valid() && topology.nvlink_bundle(other, one).valid();
      if (whole) lanes.set(a, b, topology.link(bundle).lanes * kChannelsPerLane);
    }
  }
  return lanes;
}

/// Rings inside one node; a single one in ascending order where the lanes offer none of their own.
std::vector<GpuGroup> rings_in_node(const Topology& topology, const GpuGroup& gpus) {
  if (gpus.size() < 2) return {};
  if (topology.cluster().node.interconnect != GpuInterconnect::direct) return {gpus};
  std::vector<GpuGroup> rings;
  for (const RingOrder& order : pack_rings(lanes_between(topology, gpus))) {
    GpuGroup ring;
    for (const int index : order) ring.push_back(gpus[static_cast<std::size_t>(index)]);
    rings.push_back(std::move(ring));
  }
  if (rings.empty()) rings.push_back(gpus);
  return rings;
}

PathClass class_of_hop(const Topology& topology, int here, int next) {
  const Route route = topology.route(here, next);
  const bool all_nvlink = std::ranges::all_of(route.links, [&](LinkId link) {
    return topology.link(link).technology == LinkTechnology::nvlink;
  });
  if (!all_nvlink) return PathClass::pcie;
  const bool adjacent = topology.cluster().node.interconnect == GpuInterconnect::nvswitch ||
                        topology.nvlink_bundle(here, next).valid();
  return adjacent ? PathClass::nvlink : PathClass::relay;
}

bool runs_over_pcie(const Topology& topology, const GpuGroup& ring) {
  bool pcie = false;
  for_each_hop(ring, [&](int here, int next) {
    pcie = pcie || class_of_hop(topology, here, next) == PathClass::pcie;
  });
  return pcie;
}

/// Every ring runs in both directions, with half of its traffic each; with a hop over PCIe in one
/// direction, because NCCL's search doubles such a ring in its own order.
void add_closed_rings(const Topology& topology, const NodeGroup& node, LinkSums& loads) {
  const double share = 0.5 / static_cast<double>(node.rings.size());
  for (const GpuGroup& ring : node.rings) {
    const bool one_way = runs_over_pcie(topology, ring);
    for_each_hop(ring, [&](int here, int next) {
      loads.add(topology.route(here, next), one_way ? 2 * share : share);
      if (!one_way) loads.add(topology.route(next, here), share);
    });
  }
}

/// One GPU for every NIC that the group uses in a node.
GpuGroup nic_owners(const Topology& topology, const GpuGroup& gpus) {
  GpuGroup owners;
  for (const int gpu : gpus) {
    const bool is_new = owners.empty() || topology.nic_of(owners.back()) != topology.nic_of(gpu);
    if (is_new) owners.push_back(gpu);
  }
  return owners;
}

/// Rings closed inside the nodes, and every rail from owner to owner.
LinkSums loads_of_closed_rings(const Topology& topology, const std::vector<NodeGroup>& nodes) {
  LinkSums loads;
  for (const NodeGroup& node : nodes) add_closed_rings(topology, node, loads);
  if (nodes.size() == 1) return loads;
  const std::vector<GpuGroup> rails = rail_owners(topology, nodes);
  const double share = 1.0 / static_cast<double>(rails.size());
  for (const GpuGroup& rail : rails) {
    for_each_hop(rail, [&](int here, int next) { loads.add(topology.route(here, next), share); });
  }
  return loads;
}

/// All GPUs in ring order: node by node, each node from the owner of the rail's NIC on.
GpuGroup chain_of(const std::vector<NodeGroup>& nodes, const GpuGroup& rail) {
  GpuGroup chain;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    GpuGroup gpus = nodes[node].gpus;
    std::rotate(gpus.begin(), std::ranges::find(gpus, rail[node]), gpus.end());
    chain.insert(chain.end(), gpus.begin(), gpus.end());
  }
  return chain;
}

/// Per rail one ring over all GPUs, which passes through each node once.
LinkSums loads_of_chains(const Topology& topology, const std::vector<NodeGroup>& nodes) {
  const std::vector<GpuGroup> rails = rail_owners(topology, nodes);
  const double share = 1.0 / static_cast<double>(rails.size());
  LinkSums loads;
  for (const GpuGroup& rail : rails) {
    for_each_hop(chain_of(nodes, rail),
                 [&](int here, int next) { loads.add(topology.route(here, next), share); });
  }
  return loads;
}

LinkSums loads_of(const Topology& topology, const std::vector<NodeGroup>& nodes) {
  const bool nvlink = topology.cluster().node.interconnect != GpuInterconnect::none;
  const bool closed_in_nodes = nvlink || nodes.size() == 1;
  return closed_in_nodes ? loads_of_closed_rings(topology, nodes)
                         : loads_of_chains(topology, nodes);
}

/// How GPUs of one node reach each other on the rings: the worst hop counts.
PathClass path_class(const Topology& topology, const std::vector<NodeGroup>& nodes) {
  PathClass worst = PathClass::nvlink;
  for (const NodeGroup& node : nodes) {
    for (const GpuGroup& ring : node.rings) {
      for_each_hop(ring, [&](int here, int next) {
        worst = std::max(worst, class_of_hop(topology, here, next));
      });
    }
  }
  return worst;
}

RingShape shape_of(const Topology& topology, const std::vector<NodeGroup>& nodes) {
  const NodeSpec& spec = topology.cluster().node;
  RingShape shape;
  shape.nodes = static_cast<int>(nodes.size());
  for (const NodeGroup& node : nodes) {
    shape.ranks += static_cast<int>(node.gpus.size());
    shape.gpus_per_node = std::max(shape.gpus_per_node, static_cast<int>(node.gpus.size()));
    shape.same_order = shape.same_order && node.rings.size() <= 1;
  }
  shape.path = path_class(topology, nodes);
  shape.architecture = spec.gpu.architecture;
  shape.over_switch = spec.interconnect == GpuInterconnect::nvswitch;
  shape.nvlinks = spec.interconnect == GpuInterconnect::none ? 0 : spec.gpu.nvlink_links;
  shape.nic_latency = spec.nic_latency;
  shape.ring_latency = spec.nic_ring_latency;
  return shape;
}

/// Lies between nodes, so that it limits the network and not the ring inside the nodes.
bool between_nodes(const Link& link, bool nvlink_nodes) {
  if (link.technology == LinkTechnology::nvlink) return false;
  return nvlink_nodes || link.technology == LinkTechnology::nic;
}

}  // namespace

std::vector<NodeGroup> by_node(const Topology& topology, std::span<const int> ranks) {
  std::map<int, GpuGroup> nodes;
  for (const int gpu : ranks) nodes[topology.node_of(gpu)].push_back(gpu);
  std::vector<NodeGroup> groups;
  for (auto& [node, gpus] : nodes) {
    std::ranges::sort(gpus);
    assert(std::ranges::adjacent_find(gpus) == gpus.end());
    groups.push_back({gpus, rings_in_node(topology, gpus)});
  }
  return groups;
}

std::vector<GpuGroup> rail_owners(const Topology& topology, const std::vector<NodeGroup>& nodes) {
  std::vector<GpuGroup> owners;
  std::size_t rails = 0;
  for (const NodeGroup& node : nodes) {
    owners.push_back(nic_owners(topology, node.gpus));
    rails = std::max(rails, owners.back().size());
  }
  std::vector<GpuGroup> by_rail(rails);
  for (std::size_t rail = 0; rail < rails; ++rail) {
    for (const GpuGroup& own : owners) by_rail[rail].push_back(own[rail % own.size()]);
  }
  return by_rail;
}

namespace {

/// One rail's ring number `ring` through all nodes, enters and leaves each at the rail's owner.
DirectedRing ring_of_rail(const std::vector<NodeGroup>& nodes, const GpuGroup& rail,
                          std::size_t ring, bool reversed) {
  DirectedRing made;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::vector<GpuGroup>& rings = nodes[node].rings;
    GpuGroup order = rings.empty() ? nodes[node].gpus : rings[ring % rings.size()];
    if (reversed) std::ranges::reverse(order);
    std::rotate(order.begin(), std::ranges::find(order, rail[node]), order.end());
    made.order.insert(made.order.end(), order.begin(), order.end());
    made.via.insert(made.via.end(), order.begin(), order.end());
    made.via.back() = rail[node];
  }
  return made;
}

std::vector<DirectedRing> rings_of_rails(const Topology& topology,
                                         const std::vector<NodeGroup>& nodes) {
  std::vector<DirectedRing> rings;
  const std::vector<GpuGroup> rails = rail_owners(topology, nodes);
  const GpuInterconnect interconnect = topology.cluster().node.interconnect;
  std::size_t count = 1;
  for (const NodeGroup& node : nodes) count = std::max(count, node.rings.size());
  for (const GpuGroup& rail : rails) {
    if (interconnect == GpuInterconnect::none) rings.push_back({chain_of(nodes, rail)});
    for (std::size_t ring = 0; interconnect != GpuInterconnect::none && ring < count; ++ring) {
      rings.push_back(ring_of_rail(nodes, rail, ring, false));
      // Over a switch both directions load the same ports.
      if (interconnect == GpuInterconnect::direct)
        rings.push_back(ring_of_rail(nodes, rail, ring, true));
    }
  }
  for (DirectedRing& ring : rings) ring.share = 1.0 / static_cast<double>(rings.size());
  return rings;
}

}  // namespace

std::vector<DirectedRing> directed_rings(const Topology& topology, const RingPaths& paths) {
  if (paths.nodes.size() > 1) return rings_of_rails(topology, paths.nodes);
  std::vector<DirectedRing> rings;
  const std::vector<GpuGroup>& closed = paths.nodes.front().rings;
  for (const GpuGroup& ring : closed) {
    const bool one_way = runs_over_pcie(topology, ring);
    const double share = (one_way ? 1.0 : 0.5) / static_cast<double>(closed.size());
    rings.push_back({ring, share});
    if (!one_way) rings.push_back({GpuGroup(ring.rbegin(), ring.rend()), share});
  }
  return rings;
}

RingPaths ring_paths(const Topology& topology, std::span<const int> ranks) {
  assert(ranks.size() >= 2);
  RingPaths paths;
  paths.nodes = by_node(topology, ranks);
  paths.shape = shape_of(topology, paths.nodes);
  paths.links = loads_of(topology, paths.nodes).list<LinkShare>();
  const bool nvlink_nodes = topology.cluster().node.interconnect != GpuInterconnect::none;
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  BytesPerSecond inside(kUnbounded);
  BytesPerSecond network(kUnbounded);
  paths.slowest_link = BytesPerSecond(kUnbounded);
  for (const auto& [link, share] : paths.links) {
    const BytesPerSecond rate = topology.link(link).bandwidth;
    paths.slowest_link = std::min(paths.slowest_link, rate);
    const bool outside = paths.shape.nodes > 1 && between_nodes(topology.link(link), nvlink_nodes);
    BytesPerSecond& limit = outside ? network : inside;
    limit = std::min(limit, rate / share);
  }
  paths.shape.bus_bandwidth = std::min(inside, network);
  paths.shape.inside_bandwidth = std::min(inside, BytesPerSecond(1e15));
  if (paths.shape.nodes > 1) paths.shape.network_bandwidth = network;
  return paths;
}

}  // namespace tessera
