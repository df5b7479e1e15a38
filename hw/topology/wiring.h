#pragma once

#include <map>
#include <memory>
#include <vector>

#include "hw/fabric/fabric.h"
#include "hw/node.h"
#include "hw/node_links.h"
#include "hw/units/input_error.h"

namespace tessera {

/// All links of a cluster: node by node in the order of `node`, then those of the fabric, then that
/// of the storage where there is one.
struct Wiring {
  NodeLinks node;                    ///< as every whole node is
  std::map<int, NodeLinks> damaged;  ///< nodes with missing links
  std::shared_ptr<const Fabric> fabric;
  std::vector<Link> links;    ///< bandwidths as the faults leave them
  std::vector<bool> missing;  ///< per link; empty where none is
};

/// Lays the links of a cluster that has no other problems. Adds to `problems` faults that name no
/// link and GPUs or NICs that the missing links cut off; the wiring may not be used then.
Wiring wire(const ClusterSpec& cluster, std::vector<Problem>& problems);

/// Whether `text` is `pattern`, in which * stands for any characters.
bool matches(std::string_view pattern, std::string_view text);

/// "node0/gpu1->gpu0" for "node0/gpu0->gpu1": the other direction of the cable.
std::string reversed_link_name(const std::string& name);

}  // namespace tessera
