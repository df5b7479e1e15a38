#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/gpu.h"
#include "hw/units/quantity.h"
#include "sim/collectives/collective.h"

namespace tessera {

/// NCCL's tables are in microseconds.
constexpr Seconds microseconds(double count) {
  return Seconds(count * 1e-6);
}

/// How neighbours in a ring reach each other inside a node, best first.
enum class PathClass : std::uint8_t {
  nvlink,  ///< a bundle or the switch (NCCL: NVL)
  relay,   ///< NVLinks through a third GPU (NCCL: NVB)
  pcie
};

/// What NCCL's tuner knows of a group of GPUs and the rings through it.
struct RingShape {
  int ranks = 0;
  int nodes = 1;
  int gpus_per_node = 0;               ///< of the node with most of them; 0 where nobody asks
  PathClass path = PathClass::nvlink;  ///< of the worst hop
  bool same_order = true;  ///< all channels visit the GPUs in one order ("sameChannels")
  Architecture architecture = Architecture::volta;
  bool over_switch = false;  ///< the GPUs of a node meet in an NVSwitch
  int nvlinks = 0;           ///< of one GPU; 0 without NVLink
  Seconds nic_latency;
  Seconds ring_latency;              ///< NodeSpec::nic_ring_latency
  BytesPerSecond bus_bandwidth;      ///< of all channels together
  BytesPerSecond inside_bandwidth;   ///< what the links inside the nodes allow the ring
  BytesPerSecond network_bandwidth;  ///< what the links between nodes allow; 0 for one node
};

/// Price of one protocol: `latency` plus bytes over `share` of the ring's bandwidth.
struct ProtocolPrice {
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  Seconds latency;
  double share = 1;  ///< in (0, 1]
};

/// Microseconds for LL, LL128, Simple.
using PerProtocol = std::array<double, 3>;

/// The parts of tuning.cc's latencies, so that other models of time can weigh them differently.
struct LatencyTerms {
  Seconds base;      ///< once
  Seconds inside;    ///< of a step inside a node
  Seconds between;   ///< of a step between nodes, without what the NIC adds
  Seconds nic;       ///< what the NIC adds to a step between nodes
  Seconds overhead;  ///< least time of a step inside a node where several nodes take part
};
LatencyTerms ring_latency_terms(CollectiveProtocol protocol, const RingShape& ring);
LatencyTerms tree_latency_terms(CollectiveProtocol protocol, const RingShape& ring);

/// True where NCCL runs this protocol on the group's links.
bool protocol_enabled(CollectiveProtocol protocol, const RingShape& ring);

/// Most that LL moves over a ring (tuning.cc: llMaxBws).
BytesPerSecond ll_cap(const RingShape& ring);

/// Rounds in which every rank passes a piece on: 2(n-1) for all_reduce.
int ring_steps(CollectiveKind kind, int ranks);

/// The protocols that NCCL enables on this ring, in the order LL, LL128, Simple.
/// Source: NVIDIA/nccl 2.30.7 src/graph/tuning.cc, rows of the ring algorithm. AMD GPUs, whose RCCL
/// has a table of its own, are treated like Ampere.
std::vector<ProtocolPrice> protocol_prices(const RingShape& ring, CollectiveKind kind);

}  // namespace tessera
