#include "hw/topology/topology_graph.h"

namespace tessera {
namespace {

void add_fabric(const Topology& topology, TopologyGraph& graph) {
  const SwitchGraph& switches = topology.fabric().graph();
  for (const SwitchGraph::Place& place : switches.places()) {
    graph.fabric_places.push_back(static_cast<int>(graph.places.size()));
    graph.places.push_back({PlaceKind::fabric_switch, place.name, -1});
  }
  for (std::size_t i = 0; i < switches.ends().size(); ++i) {
    const LinkId link = topology.link_of_fabric(static_cast<int>(i));
    if (topology.is_missing(link)) continue;
    const LinkEnds& ends = switches.ends()[i];
    graph.edges.push_back({graph.fabric_places[static_cast<std::size_t>(ends.from)],
                           graph.fabric_places[static_cast<std::size_t>(ends.to)], link});
  }
}

/// Places of one node from `first` on. Its place "fabric" stays without edges: NICs lead to the
/// switches that they are plugged into.
void add_node(const Topology& topology, int node, TopologyGraph& graph) {
  const NodeLinks& links = topology.node_links(node);
  const int first = static_cast<int>(graph.places.size());
  for (const NodeLinks::Place& place : links.places()) {
    if (place.kind == PlaceKind::gpu) graph.gpus.push_back(static_cast<int>(graph.places.size()));
    graph.places.push_back({place.kind, place.name, node});
  }
  for (int nic = 0; nic < links.nic_count(); ++nic) {
    const int slot = first + links.attachment_of_nic(nic);
    graph.edges.push_back({slot, first + links.place_of_nic(nic), LinkId()});
    graph.edges.push_back({first + links.place_of_nic(nic), slot, LinkId()});
  }
  const auto end_of = [&](int place, int other) {
    if (links.places()[static_cast<std::size_t>(place)].kind != PlaceKind::fabric_switch) {
      return first + place;
    }
    const int port = node * links.nic_count() + other - links.place_of_nic(0);
    return graph.fabric_places[static_cast<std::size_t>(topology.fabric().place_of_port(port))];
  };
  for (std::size_t i = 0; i < links.ends().size(); ++i) {
    const LinkId link = topology.link_of_node(node, static_cast<int>(i));
    if (topology.is_missing(link)) continue;
    const LinkEnds& ends = links.ends()[i];
    graph.edges.push_back({end_of(ends.from, ends.to), end_of(ends.to, ends.from), link});
  }
}

}  // namespace

TopologyGraph graph_of(const Topology& topology) {
  TopologyGraph graph;
  add_fabric(topology, graph);
  for (int node = 0; node < topology.cluster().node_count; ++node) add_node(topology, node, graph);
  return graph;
}

}  // namespace tessera
