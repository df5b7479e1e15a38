#pragma once

#include <string>

#include "hw/topology/topology_metrics.h"

namespace tessera {

/// A topology as a person reads it: sizes, figures with their definitions, how the GPUs of a node
/// reach each other, and the links, alike ones together. With `every_link`, each link on a line of
/// its own under the name that `faults` understands.
std::string topology_text(const Topology& topology, const TopologyMetrics& metrics,
                          bool every_link);

/// "node*/gpu*->nvswitch": the name of a link with every number left open.
std::string link_pattern(const std::string& name);

}  // namespace tessera
