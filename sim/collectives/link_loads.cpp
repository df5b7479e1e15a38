#include "sim/collectives/link_loads.h"

#include <algorithm>

namespace tessera {
namespace {

double size_of(const CollectiveCall& call) {
  return static_cast<double>(call.bytes.value());
}

double ring_bytes(CollectiveKind kind, double bytes, int ranks) {
  return bytes * ring_steps(kind, ranks) / ranks;
}

/// NCCL's ncclGetBtree: parents by the lowest set bit.
int tree_parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

/// Both directions of the tree's edges between nodes: half of `bytes` per tree, spread over rails.
void add_trees_between_nodes(const Topology& topology, const std::vector<NodeGroup>& nodes,
                             double bytes, LinkBytes& loads) {
  const auto rails = rail_owners(topology, nodes);
  const double part = bytes / 2 / static_cast<double>(rails.size());
  for (const bool second : {false, true}) {
    const std::vector<int> parents = tree_parents(static_cast<int>(nodes.size()), second);
    for (std::size_t node = 0; node < parents.size(); ++node) {
      if (parents[node] < 0) continue;
      for (const std::vector<int>& rail : rails) {
        const int child = rail[node];
        const int parent = rail[static_cast<std::size_t>(parents[node])];
        loads.add(topology.route(child, parent), part);
        loads.add(topology.route(parent, child), part);
      }
    }
  }
}

/// Chains through the GPUs of each node, the buffer up and down. Every ring of the node, cut open
/// at each of its GPUs in turn, so that no edge is left out more often than another.
void add_chains(const Topology& topology, const std::vector<NodeGroup>& nodes, double bytes,
                LinkBytes& loads) {
  for (const NodeGroup& node : nodes) {
    const double n = static_cast<double>(node.gpus.size());
    const double part = n > 1 ? bytes * (n - 1) / n / static_cast<double>(node.rings.size()) : 0;
    for (const std::vector<int>& ring : node.rings) {
      for (std::size_t i = 0; i < ring.size(); ++i) {
        const int here = ring[i];
        const int next = ring[(i + 1) % ring.size()];
        loads.add(topology.route(here, next), part);
        loads.add(topology.route(next, here), part);
      }
    }
  }
}

/// First half of the way between two GPUs of a switch: up to it; second half: down from it.
void add_switch_ports(const Topology& topology, const NodeGroup& node, double bytes,
                      LinkBytes& loads) {
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const Route way = topology.route(node.gpus[i], node.gpus[(i + 1) % node.gpus.size()]);
    if (!way.links.empty()) loads.add(way, bytes);
  }
}

void add_nvls(const Topology& topology, const std::vector<NodeGroup>& nodes, double bytes,
              LinkBytes& loads) {
  for (const NodeGroup& node : nodes) {
    if (node.gpus.size() < 2) continue;
    add_switch_ports(topology, node, bytes * (1 + 1 / static_cast<double>(node.gpus.size())),
                     loads);
  }
}

/// Each rail's part to the network's switches and the result back: half a route each way.
void add_collnet_rails(const Topology& topology, const std::vector<NodeGroup>& nodes, double bytes,
                       LinkBytes& loads) {
  const auto rails = rail_owners(topology, nodes);
  const double part = bytes / static_cast<double>(rails.size());
  for (const std::vector<int>& rail : rails) {
    for (std::size_t node = 0; node < rail.size(); ++node) {
      const Route way = topology.route(rail[node], rail[(node + 1) % rail.size()]);
      loads.add(way, part);
    }
  }
}

/// All-to-all inside the nodes: every GPU gathers its part and spreads the result.
void add_collnet_direct(const Topology& topology, const std::vector<NodeGroup>& nodes, double bytes,
                        LinkBytes& loads) {
  for (const NodeGroup& node : nodes) {
    const double part = 2 * bytes / static_cast<double>(node.gpus.size());
    for (const int from : node.gpus) {
      for (const int to : node.gpus) {
        if (from != to) loads.add(topology.route(from, to), part);
      }
    }
  }
}

/// Rank i sends to the ranks at distance 1, 2, 4, ... the pieces that they gather from it.
void add_pat(const Topology& topology, double bytes, std::span<const int> ranks, LinkBytes& loads) {
  const std::size_t n = ranks.size();
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    const double pieces = static_cast<double>(std::min(distance, n - distance));
    for (std::size_t i = 0; i < n; ++i) {
      loads.add(topology.route(ranks[i], ranks[(i + distance) % n]),
                bytes / static_cast<double>(n) * pieces);
    }
  }
}

void add_pairwise(const Topology& topology, double bytes, std::span<const int> ranks,
                  LinkBytes& loads) {
  for (const int from : ranks) {
    for (const int to : ranks) {
      if (from != to)
        loads.add(topology.route(from, to), bytes / static_cast<double>(ranks.size()));
    }
  }
}

void add_rail_rings(const Topology& topology, const std::vector<NodeGroup>& nodes, double bytes,
                    LinkBytes& loads) {
  const auto rails = rail_owners(topology, nodes);
  const double part = bytes / static_cast<double>(rails.size());
  for (const std::vector<int>& rail : rails) {
    for (std::size_t i = 0; i < rail.size(); ++i) {
      loads.add(topology.route(rail[i], rail[(i + 1) % rail.size()]), part);
    }
  }
}

void add_collnet(const Topology& topology, const std::vector<NodeGroup>& nodes, double bytes,
                 bool chain, LinkBytes& loads) {
  if (chain)
    add_chains(topology, nodes, bytes, loads);
  else
    add_collnet_direct(topology, nodes, bytes, loads);
  add_collnet_rails(topology, nodes, bytes, loads);
}

void add_hierarchical(const Topology& topology, const std::vector<NodeGroup>& nodes,
                      const CollectiveCall& call, LinkBytes& loads) {
  const double bytes = size_of(call);
  const int node_count = static_cast<int>(nodes.size());
  for (const NodeGroup& node : nodes) {
    const int gpus = static_cast<int>(node.gpus.size());
    if (gpus < 2) continue;
    const RingPaths inside = ring_paths(topology, node.gpus);
    loads.add(inside.links, ring_bytes(call.kind, bytes, gpus));
  }
  if (node_count > 1) {
    add_rail_rings(topology, nodes, ring_bytes(call.kind, bytes, node_count), loads);
  }
}

}  // namespace

std::vector<int> tree_parents(int nodes, bool second_tree) {
  std::vector<int> parents;
  for (int node = 0; node < nodes; ++node) {
    int parent = -1;
    if (!second_tree) {
      parent = tree_parent(node, nodes);
    } else if (nodes % 2 == 0) {  // mirrored
      const int up = tree_parent(nodes - 1 - node, nodes);
      parent = up < 0 ? -1 : nodes - 1 - up;
    } else {  // shifted by one
      const int up = tree_parent((node - 1 + nodes) % nodes, nodes);
      parent = up < 0 ? -1 : (up + 1) % nodes;
    }
    parents.push_back(parent);
  }
  return parents;
}

std::vector<LinkLoad> link_loads(const Topology& topology, const RingPaths& paths,
                                 CollectiveAlgorithm algorithm, const CollectiveCall& call,
                                 std::span<const int> ranks) {
  LinkBytes loads;
  const double bytes = size_of(call);
  const bool several = paths.nodes.size() > 1;
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      loads.add(paths.links, ring_bytes(call.kind, bytes, paths.shape.ranks));
      break;
    case CollectiveAlgorithm::tree:
      add_chains(topology, paths.nodes, bytes, loads);
      if (several) add_trees_between_nodes(topology, paths.nodes, bytes, loads);
      break;
    case CollectiveAlgorithm::nvls:
    case CollectiveAlgorithm::nvls_tree:
      add_nvls(topology, paths.nodes, bytes, loads);
      if (several) add_trees_between_nodes(topology, paths.nodes, bytes, loads);
      break;
    case CollectiveAlgorithm::collnet_direct:
    case CollectiveAlgorithm::collnet_chain:
      add_collnet(topology, paths.nodes, bytes, algorithm == CollectiveAlgorithm::collnet_chain,
                  loads);
      break;
    case CollectiveAlgorithm::pat:
      add_pat(topology, bytes, ranks, loads);
      break;
    case CollectiveAlgorithm::pairwise:
      if (call.kind == CollectiveKind::send_recv)
        loads.add(topology.route(ranks[0], ranks[1]), bytes);
      else
        add_pairwise(topology, bytes, ranks, loads);
      break;
    case CollectiveAlgorithm::hierarchical:
      add_hierarchical(topology, paths.nodes, call, loads);
      break;
  }
  return loads.list();
}

}  // namespace tessera
