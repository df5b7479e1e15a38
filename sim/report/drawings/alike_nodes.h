#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hw/topology/topology.h"
#include "hw/topology/topology_graph.h"

namespace tessera {

/// What a link has to have in common with another one, besides its rate, for a drawing of one to
/// stand for both: the share of it that a step uses, say. Empty: nothing.
using LinkLook = std::function<std::string(LinkId)>;

/// The nodes of a cluster, those together that a drawing cannot tell apart: their links join the
/// same places inside at the same rates and looks, and leave to the same switches. Each group
/// ascends, and groups by their first node.
std::vector<std::vector<int>> alike_nodes(const Topology& topology, const TopologyGraph& graph,
                                          const LinkLook& look);

}  // namespace tessera
