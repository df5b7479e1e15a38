#pragma once

#include <span>
#include <vector>

#include "hw/topology/topology.h"
#include "sim/collectives/nccl_tuning.h"

namespace tessera {

/// Part of a collective's ring traffic that crosses one link: with three rings over three bundles,
/// a third each. Above 1 where a ring crosses the link more than once.
struct LinkShare {
  LinkId link;
  double share = 0;
};

/// The part of a group that lies on one node, GPUs ascending, and its rings there.
struct NodeGroup {
  std::vector<int> gpus;
  std::vector<std::vector<int>> rings;  ///< empty for a single GPU
};

/// The rings of a group of GPUs over the topology.
struct RingPaths {
  RingShape shape;
  std::vector<LinkShare> links;  ///< ascending by link, each once
  BytesPerSecond slowest_link;   ///< of `links`
  std::vector<NodeGroup> nodes;  ///< the group by node
};

std::vector<NodeGroup> by_node(const Topology& topology, std::span<const int> ranks);

/// For every NIC in turn, the GPU of each node that owns it; nodes with fewer NICs take theirs
/// again.
std::vector<std::vector<int>> rail_owners(const Topology& topology,
                                          const std::vector<NodeGroup>& nodes);

/// Rings as NCCL lays them, for at least two different GPUs:
/// - `direct` nodes: as many rings as the lanes between the group's GPUs carry, in both directions;
///   where these lanes close no ring, one ring over the routes of the topology (relays, PCIe);
/// - `nvswitch` nodes: one ring at the rate of the GPUs' ports;
/// - `none`: one ring over the PCIe tree;
/// - several nodes: one ring per NIC that the group's GPUs use. On NVLink nodes each of them visits
///   the node's GPUs and leaves over the GPU that owns the NIC (NCCL's PXN); on PCIe nodes it
///   enters at one end of the chain of GPUs and leaves at the other.
RingPaths ring_paths(const Topology& topology, std::span<const int> ranks);

/// A ring in one direction, and its part of the group's traffic.
struct DirectedRing {
  std::vector<int> order;
  double share = 0;
  std::vector<int> via = {};  ///< by GPU of `order`: the GPU over which it leaves its node for the
                              ///< next; itself where it does not. Empty: all leave directly
};

/// The rings that `paths` adds up, one by one: both directions of those inside a node; over several
/// nodes these for every rail, closed inside each node over the GPU that owns the rail's NIC.
std::vector<DirectedRing> directed_rings(const Topology& topology, const RingPaths& paths);

}  // namespace tessera
