#pragma once

#include <string>

#include "hw/topology/topology.h"

namespace tessera {

/// A picture of a topology as an SVG file: switches of the fabric above, by tiers, the nodes below
/// with their NICs, sockets, PCIe switches, GPUs and NVLinks. Large clusters show their first nodes
/// and the switches that these hang on, and say what is left out. Degraded links are drawn red.
std::string topology_svg(const Topology& topology);

}  // namespace tessera
