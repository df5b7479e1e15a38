#pragma once

#include <cstdint>
#include <vector>

#include "hw/gpu.h"
#include "hw/units/quantity.h"
#include "sim/collectives/collective.h"

namespace tessera {

/// How neighbours in a ring reach each other inside a node, best first.
enum class PathClass : std::uint8_t {
  nvlink,  ///< a bundle or the switch (NCCL: NVL)
  relay,   ///< NVLinks through a third GPU (NCCL: NVB)
  pcie
};

/// What NCCL's tuner knows of a ring.
struct RingShape {
  int ranks = 0;
  int nodes = 1;
  PathClass path = PathClass::nvlink;  ///< of the worst hop
  bool same_order = true;  ///< all channels visit the GPUs in one order ("sameChannels")
  Architecture architecture = Architecture::volta;
  Seconds nic_latency;
  BytesPerSecond bus_bandwidth;  ///< of all channels together
};

/// Price of one protocol: `latency` plus bytes over `share` of the ring's bandwidth.
struct ProtocolPrice {
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  Seconds latency;
  double share = 1;  ///< in (0, 1]
};

/// Rounds in which every rank passes a piece on: 2(n-1) for all_reduce.
int ring_steps(CollectiveKind kind, int ranks);

/// The protocols that NCCL enables on this ring, in the order LL, LL128, Simple.
/// Source: NVIDIA/nccl 2.30.7 src/graph/tuning.cc, rows of the ring algorithm. AMD GPUs, whose RCCL
/// has a table of its own, are treated like Ampere.
std::vector<ProtocolPrice> protocol_prices(const RingShape& ring, CollectiveKind kind);

}  // namespace tessera
