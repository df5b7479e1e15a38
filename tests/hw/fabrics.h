#pragma once

#include "tests/hw/boxes.h"

namespace tessera::fabrics {

/// Nodes of 8 GPUs with 8 NICs of 25 GB/s, all of it usable.
inline ClusterSpec nodes(int count) {
  ClusterSpec cluster = boxes::alone(boxes::a100_switch());
  cluster.node_count = count;
  cluster.fabric_latency = 0.6_us;
  cluster.fabric.link_latency = 0.5_us;
  return cluster;
}

/// Two units of four nodes, a leaf per rail and unit, four spines.
inline ClusterSpec rails() {
  ClusterSpec cluster = nodes(8);
  cluster.fabric.kind = FabricKind::rail_optimized;
  cluster.fabric.nodes_per_leaf = 4;
  cluster.fabric.spines = 4;
  return cluster;
}

/// Four pods of two racks of two nodes, 1:2 in the racks and 1:3 above the pods.
inline ClusterSpec clos() {
  ClusterSpec cluster = nodes(16);
  cluster.fabric.kind = FabricKind::clos;
  cluster.fabric.nodes_per_leaf = 2;
  cluster.fabric.spines = 4;
  cluster.fabric.leaf_oversubscription = 2;
  cluster.fabric.units_per_pod = 2;
  cluster.fabric.cores = 2;
  cluster.fabric.pod_oversubscription = 3;
  return cluster;
}

/// Four groups of four switches with four NICs each.
inline ClusterSpec dragonfly() {
  ClusterSpec cluster = nodes(8);
  cluster.fabric.kind = FabricKind::dragonfly;
  cluster.fabric.nics_per_switch = 4;
  cluster.fabric.switches_per_group = 4;
  cluster.fabric.global_links = 2;
  cluster.fabric.link_bandwidth = 25_GBps;
  cluster.fabric.global_bandwidth = 25_GBps;
  return cluster;
}

inline ClusterSpec torus(const std::string& dimensions, int node_count) {
  ClusterSpec cluster = nodes(node_count);
  cluster.fabric.kind = FabricKind::torus;
  cluster.fabric.dimensions = dimensions;
  cluster.fabric.link_bandwidth = 100_GBps;
  return cluster;
}

/// Three nodes of one GPU; node 2 hangs on its own switch, which two cables join to the other.
inline ClusterSpec graph() {
  NodeSpec node = boxes::node("lone", boxes::gpu("A100", Architecture::ampere, "8.0", 12), 1);
  node.nic_count = 1;
  node.nic_bandwidth = 25_GBps;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 3;
  cluster.fabric.kind = FabricKind::graph;
  cluster.fabric.switches = {"left", "right"};
  cluster.fabric.links = {{"node0.nic0", "left", 25_GBps, 1_us},
                          {"node1.nic0", "left", 25_GBps, 1_us},
                          {"node2.nic0", "right", 25_GBps, 1_us},
                          {"left", "right", 10_GBps, 2_us},
                          {"left", "right", 10_GBps, 2_us}};
  return cluster;
}

}  // namespace tessera::fabrics
