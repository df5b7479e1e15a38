#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// How the NICs of the nodes are joined.
enum class FabricKind : std::uint8_t {
  plain_switch,    ///< one non-blocking switch that every NIC is plugged into
  rail_optimized,  ///< fat tree whose leaves hold NIC i of every node of a unit
  clos,            ///< fat tree whose leaves hold all NICs of a few nodes (top of rack)
  dragonfly,       ///< groups of switches, all to all inside and between groups
  torus,           ///< a router per node or per NIC, joined to its neighbours in every dimension
  graph,           ///< switches and links as listed
};

/// A cable of a `graph` fabric, both directions unless `one_way`. Ends are names of switches or
/// "node3.nic0".
struct FabricCable {
  std::string from;
  std::string to;
  BytesPerSecond bandwidth;  ///< one direction, usable
  Seconds latency;           ///< the switch that it leads to included
  bool one_way = false;

  bool operator==(const FabricCable&) const = default;
};

/// The network between nodes. Sizes that a kind does not use stay zero.
struct FabricSpec {
  FabricKind kind = FabricKind::plain_switch;
  // rail_optimized, clos
  int nodes_per_leaf = 0;            ///< nodes whose NICs share a leaf (rail: nodes of a unit)
  int spines = 0;                    ///< per pod; every leaf of the pod has one bundle to each
  double leaf_oversubscription = 1;  ///< rate of a leaf's NICs over the rate of its uplinks
  int units_per_pod = 0;             ///< leaves (rail: units) below one set of spines; 0 = all
  int cores = 0;                     ///< per spine, for several pods
  double pod_oversubscription = 1;   ///< rate into a spine from below over that of its uplinks
  // dragonfly
  int nics_per_switch = 0;
  int switches_per_group = 0;
  int global_links = 1;             ///< between two groups, spread over the groups' switches
  BytesPerSecond global_bandwidth;  ///< of each of these
  // torus
  std::string dimensions;  ///< "4x4x4": as many routers as nodes, or as NICs
  // dragonfly (links inside a group), torus
  BytesPerSecond link_bandwidth;
  double link_efficiency = 1;  ///< share of link and global bandwidth that is usable, in (0, 1]
  Seconds link_latency;        ///< one hop between switches, the next switch included
  // graph
  std::vector<std::string> switches;
  std::vector<FabricCable> links;
  /// Seed of the hash that picks one of several equal ways.
  int hash_seed = 0;

  bool operator==(const FabricSpec&) const = default;
};

/// Links that are slower than described, or missing.
struct LinkFault {
  std::string link;  ///< name as `tessera topology show` prints it; * stands for any characters
  double bandwidth_share = 0;  ///< what is left of the bandwidth, in [0, 1); 0 = missing
  bool one_way = false;        ///< false: the other direction of the cable as well
};

}  // namespace tessera
