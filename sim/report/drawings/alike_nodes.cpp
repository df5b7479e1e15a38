#include "sim/report/drawings/alike_nodes.h"

#include <map>

namespace tessera {
namespace {

/// A place as its node sees it: numbered within the node, or by itself where it is of the fabric.
std::string seen_from_node(const TopologyGraph& graph, int place, const std::vector<int>& first) {
  const int node = graph.places[static_cast<std::size_t>(place)].node;
  return node < 0 ? "f" + std::to_string(place)
                  : std::to_string(place - first[static_cast<std::size_t>(node)]);
}

/// The first place of every node.
std::vector<int> first_places(const TopologyGraph& graph, int nodes) {
  std::vector<int> first(static_cast<std::size_t>(nodes), -1);
  for (std::size_t i = 0; i < graph.places.size(); ++i) {
    const int node = graph.places[i].node;
    if (node >= 0 && first[static_cast<std::size_t>(node)] < 0)
      first[static_cast<std::size_t>(node)] = static_cast<int>(i);
  }
  return first;
}

}  // namespace

std::vector<std::vector<int>> alike_nodes(const Topology& topology, const TopologyGraph& graph,
                                          const LinkLook& look) {
  const int nodes = topology.cluster().node_count;
  const std::vector<int> first = first_places(graph, nodes);
  std::vector<std::string> keys(static_cast<std::size_t>(nodes));
  for (const TopologyGraph::Edge& edge : graph.edges) {
    const int from = graph.places[static_cast<std::size_t>(edge.from)].node;
    const int node = from >= 0 ? from : graph.places[static_cast<std::size_t>(edge.to)].node;
    if (node < 0) continue;
    std::string& key = keys[static_cast<std::size_t>(node)];
    key += seen_from_node(graph, edge.from, first) + '>' + seen_from_node(graph, edge.to, first);
    if (edge.link.valid())
      key += ' ' + std::to_string(topology.link(edge.link).bandwidth.value()) + ' ' +
             (look ? look(edge.link) : "");
    key += ';';
  }
  std::map<std::string, std::size_t> group_of_key;
  std::vector<std::vector<int>> groups;
  for (int node = 0; node < nodes; ++node) {
    const auto [at, added] =
        group_of_key.try_emplace(keys[static_cast<std::size_t>(node)], groups.size());
    if (added) groups.emplace_back();
    groups[at->second].push_back(node);
  }
  return groups;
}

}  // namespace tessera
