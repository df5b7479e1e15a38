#pragma once

#include "hw/topology/topology.h"

namespace tessera {

/// From the host memory that `gpu` copies to, through the NIC that `gpu` sends through, out of the
/// node; the fabric behind is not on it. No links where the node has no NIC.
Route host_to_network(const Topology& topology, int gpu);

}  // namespace tessera
