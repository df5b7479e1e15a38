#pragma once

#include <string>

#include "hw/topology/topology.h"
#include "hw/topology/topology_metrics.h"

namespace tessera {

/// The page of `topology show --report`: bisection and the like, the drawing, and links with what
/// their data sheets promise beside what is usable. Links of one pattern of names and one rate are
/// a row.
std::string topology_page(const Topology& topology, const TopologyMetrics& metrics,
                          const std::string& tessera_version);

}  // namespace tessera
