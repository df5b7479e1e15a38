#pragma once

#include <cstdint>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// `pcie` includes the interconnect between the sockets of a node, `fabric` is between switches.
enum class LinkTechnology : std::uint8_t { nvlink, pcie, c2c, nic, host_memory, nvme, fabric };

/// One direction of a link. Two directions of a cable are two Links and never share bandwidth.
struct Link {
  std::string name;  ///< "node0/gpu0->gpu1", "node0/gpu2->nvswitch", "node1/nic3->fabric",
                     ///< "fabric/leaf0->spine3"
  LinkTechnology technology = LinkTechnology::nvlink;
  BytesPerSecond bandwidth;  ///< usable rate: line rate x efficiency
  Seconds latency;
  int lanes = 1;  ///< NVLinks, NICs or drives in the bundle; 1 for the rest
};

}  // namespace tessera
