#include "sim/collectives/nccl_tuning.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

// tuning.cc: baseLatencies and hwLatencies, ring rows; the tree rows where NCCL uses them for
// rings.
constexpr PerProtocol kBase = {6.6, 14.0, 8.4};
constexpr PerProtocol kNvlinkStep = {0.6, 1.9, 3.4};
constexpr PerProtocol kPcieStep = {1.0, 2.5, 5.7};
constexpr PerProtocol kNetworkStep = {2.7, 4.0, 14.0};
constexpr PerProtocol kNetworkTreeStep = {5.0, 8.5, 14.0};
constexpr PerProtocol kTreeBase = {6.8, 14.0, 8.4};
constexpr PerProtocol kTreeNvlinkStep = {0.6, 1.25, 4.0};
constexpr PerProtocol kTreePcieStep = {1.0, 1.9, 4.0};
constexpr double kTreeSimpleStep = 4.0;  // on NVLink and PCIe alike

/// Cost of handing a step to the network on an Intel host (AMD: 2); three times for Simple.
constexpr PerProtocol kNetworkOverhead = {1.0, 1.0, 3.0};

/// "Plateau" of Simple all-reduce over several nodes, before Ampere and from Ampere on.
constexpr double kPlateauBeforeAmpere = 1.9;
constexpr double kPlateau = 1.4;

/// LL moves 4 bytes of data with 4 of flags; LL128 120 with 8, of which the tuner counts 0.92.
constexpr double kLlShare = 0.5;
constexpr double kLl128Share = 0.92;

/// tuning.cc: llMaxBws of one node, per generation; of several nodes, the row of Intel hosts.
constexpr BytesPerSecond kLlCapVolta = 39_GBps;
constexpr BytesPerSecond kLlCapAmpere = 87.7_GBps;
constexpr BytesPerSecond kLlCapHopper = 141_GBps;
constexpr BytesPerSecond kLlCapBlackwell = 282_GBps;
constexpr BytesPerSecond kLlCapTwoNodes = 39_GBps;
constexpr BytesPerSecond kLlCapManyNodes = 20.4_GBps;

std::size_t column(CollectiveProtocol protocol) {
  return static_cast<std::size_t>(protocol);
}

BytesPerSecond ll_cap_of_one_node(Architecture architecture) {
  switch (architecture) {
    case Architecture::pascal:
    case Architecture::volta:
    case Architecture::turing:
      return kLlCapVolta;
    case Architecture::ampere:
    case Architecture::ada:
    case Architecture::cdna1:
    case Architecture::cdna2:
    case Architecture::cdna3:
    case Architecture::cdna4:
    case Architecture::xe2:
      return kLlCapAmpere;
    case Architecture::hopper:
      return kLlCapHopper;
    case Architecture::blackwell:
    case Architecture::blackwell_ultra:
      return kLlCapBlackwell;
  }
  return kLlCapVolta;
}

double share_of(CollectiveProtocol protocol, const RingShape& ring) {
  switch (protocol) {
    case CollectiveProtocol::ll:
      return std::min(kLlShare, ll_cap(ring) / ring.bus_bandwidth);
    case CollectiveProtocol::ll128:
      return kLl128Share;
    case CollectiveProtocol::simple:
      return 1;
  }
  return 1;
}

Seconds step_in_node(CollectiveProtocol protocol, const RingShape& ring) {
  const PerProtocol& steps = ring.path == PathClass::nvlink ? kNvlinkStep : kPcieStep;
  return microseconds(steps[column(protocol)]);
}

Seconds step_between_nodes(CollectiveProtocol protocol, const RingShape& ring) {
  const PerProtocol& steps = ring.ranks == ring.nodes ? kNetworkTreeStep : kNetworkStep;
  const int crossings = protocol == CollectiveProtocol::simple ? 2 : 1;  // Simple flushes the NIC
  return microseconds(steps[column(protocol)]) + ring.nic_latency * crossings;
}

Seconds broadcast_latency(CollectiveProtocol protocol, const RingShape& ring) {
  const Seconds step =
      ring.nodes == 1 ? step_in_node(protocol, ring) : microseconds(kNetworkStep[column(protocol)]);
  if (ring.same_order) return step;
  const bool by_tree_row = protocol == CollectiveProtocol::simple && ring.nodes == 1;
  return (by_tree_row ? microseconds(kTreeSimpleStep) : step) * ring.ranks;
}

Seconds pipeline_latency(CollectiveProtocol protocol, const RingShape& ring, CollectiveKind kind) {
  const int between = ring_steps(kind, ring.nodes);
  const int inside = ring_steps(kind, ring.ranks) - between;
  Seconds step = step_in_node(protocol, ring);
  if (ring.nodes > 1) step = std::max(step, microseconds(kNetworkOverhead[column(protocol)]));
  return step * inside + step_between_nodes(protocol, ring) * between;
}

double plateau(CollectiveProtocol protocol, const RingShape& ring, CollectiveKind kind) {
  const bool applies = protocol == CollectiveProtocol::simple &&
                       kind == CollectiveKind::all_reduce && ring.nodes > 1;
  if (!applies) return 1;
  return ring.architecture < Architecture::ampere ? kPlateauBeforeAmpere : kPlateau;
}

Seconds latency_of(CollectiveProtocol protocol, const RingShape& ring, CollectiveKind kind) {
  const Seconds steps = kind == CollectiveKind::broadcast ? broadcast_latency(protocol, ring)
                                                          : pipeline_latency(protocol, ring, kind);
  return (microseconds(kBase[column(protocol)]) + steps) * plateau(protocol, ring, kind);
}

}  // namespace

BytesPerSecond ll_cap(const RingShape& ring) {
  if (ring.nodes == 1) return ll_cap_of_one_node(ring.architecture);
  return ring.nodes == 2 ? kLlCapTwoNodes : kLlCapManyNodes;
}

bool protocol_enabled(CollectiveProtocol protocol, const RingShape& ring) {
  if (protocol != CollectiveProtocol::ll128) return true;
  return ring.architecture >= Architecture::volta && ring.path != PathClass::pcie;
}

LatencyTerms ring_latency_terms(CollectiveProtocol protocol, const RingShape& ring) {
  const PerProtocol& network = ring.ranks == ring.nodes ? kNetworkTreeStep : kNetworkStep;
  const int crossings = protocol == CollectiveProtocol::simple ? 2 : 1;
  return {.base = microseconds(kBase[column(protocol)]),
          .inside = step_in_node(protocol, ring),
          .between = microseconds(network[column(protocol)]),
          .nic = ring.nic_latency * crossings,
          .overhead = microseconds(ring.nodes > 1 ? kNetworkOverhead[column(protocol)] : 0)};
}

LatencyTerms tree_latency_terms(CollectiveProtocol protocol, const RingShape& ring) {
  const PerProtocol& steps = ring.path == PathClass::nvlink ? kTreeNvlinkStep : kTreePcieStep;
  return {.base = microseconds(kTreeBase[column(protocol)]),
          .inside = microseconds(steps[column(protocol)]),
          .between = microseconds(kNetworkTreeStep[column(protocol)]),
          .nic = ring.nic_latency,
          .overhead = Seconds(0)};
}

int ring_steps(CollectiveKind kind, int ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return ranks - 1;
    case CollectiveKind::broadcast:
      return ranks;
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
      return 0;  // no ring
  }
  return 0;
}

std::vector<ProtocolPrice> protocol_prices(const RingShape& ring, CollectiveKind kind) {
  std::vector<ProtocolPrice> prices;
  for (const auto protocol :
       {CollectiveProtocol::ll, CollectiveProtocol::ll128, CollectiveProtocol::simple}) {
    if (!protocol_enabled(protocol, ring)) continue;
    prices.push_back({protocol, latency_of(protocol, ring, kind), share_of(protocol, ring)});
  }
  return prices;
}

}  // namespace tessera
