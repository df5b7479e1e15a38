#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hw/topology.h"
#include "hw/units/quantity.h"

namespace tessera {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast };
enum class CollectiveProtocol : std::uint8_t { ll, ll128, simple };

/// What one collective does to the network: after `latency`, `bytes_per_link` cross every link of
/// `links` together (one coupled flow, at the rate of the slowest link). Alone it takes `latency +
/// bytes_per_link / slowest`.
///
/// Where all links carry the same (full meshes, NVSwitch ports, one ring over PCIe),
/// `bytes_per_link` is what each really carries. Where they differ (a cube mesh's double bundles,
/// NVLink ports beside NICs), it is what the slowest link carries when the link that limits the
/// ring is busy all the time: the time alone stays exact, and faster links count as less loaded
/// than they are.
struct CollectiveCost {
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  Seconds latency;
  double bytes_per_link = 0;  ///< fractional: a ring sends 2(n-1)/n of the buffer
  double protocol_share = 1;  ///< share of a link's rate that the protocol reaches, in (0, 1];
                              ///< `bytes_per_link` is already divided by it
  std::vector<LinkId> links;  ///< each link once
  Seconds solo_time;          ///< with nothing else on the links
};

/// Cost of one collective of `bytes` (nccl-tests convention: all_reduce = buffer per rank) over
/// `ranks` (GPU numbers of the topology), as NCCL's ring runs it, with the protocol that NCCL's
/// tuner picks. Zero ranks or one rank cost nothing. Source: NVIDIA/nccl src/graph/tuning.cc
/// (latency constants, bandwidth rules).
CollectiveCost collective_cost(const Topology& topology, CollectiveKind kind, Bytes bytes,
                               std::span<const int> ranks);

}  // namespace tessera
