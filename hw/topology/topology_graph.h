#pragma once

#include <string>
#include <vector>

#include "hw/topology/topology.h"

namespace tessera {

/// Every place of a cluster and what joins them, without missing links.
struct TopologyGraph {
  struct Place {
    PlaceKind kind = PlaceKind::gpu;
    std::string name;  ///< inside its node, or of the fabric
    int node = -1;     ///< -1: of the fabric
  };
  struct Edge {
    int from = 0;
    int to = 0;
    LinkId link;  ///< invalid: the slot of a NIC, never a bottleneck
  };
  std::vector<Place> places;
  std::vector<Edge> edges;
  std::vector<int> gpus;  ///< place of each GPU

  std::vector<int> fabric_places;  ///< by place of the switch graph
};

TopologyGraph graph_of(const Topology& topology);

}  // namespace tessera
