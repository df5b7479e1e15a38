#pragma once

#include "hw/findings.h"
#include "hw/node.h"

namespace tessera {

/// Adds what is wrong with the fabric of a cluster whose nodes are in order.
void check_fabric(const ClusterSpec& cluster, Findings& findings);

}  // namespace tessera
