#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/fabric.h"
#include "hw/gpu.h"
#include "hw/units/quantity.h"

namespace tessera {

/// How the GPUs of one node reach each other.
enum class GpuInterconnect : std::uint8_t {
#include "configs/schema/words/gpu_interconnect.inc"
};

/// A bundle of NVLinks between two GPUs of a node; full duplex.
struct GpuPairLink {
#include "configs/schema/fields/gpu_pair_link.inc"
};

/// One server. Bandwidths are per direction. GPUs and NICs are spread evenly over the sockets, and
/// NICs over the GPUs, in order of their numbers.
struct NodeSpec {
#include "configs/schema/fields/node_spec.inc"
};

/// Nodes and the fabric that joins them.
struct ClusterSpec {
#include "configs/schema/fields/cluster_spec.inc"
  /// Of a storage behind the fabric that all nodes share, for what they write; 0 = none.
  BytesPerSecond storage_bandwidth;
  int storage_nodes = 0;  ///< the last nodes, which are no more than the storage's ports

  int gpu_count() const {
    return node.gpu_count * node_count;
  }
};

/// NICs as routes see them: those of one GPU count as one.
int nic_bundles(const NodeSpec& node);
/// Usable rate of one such bundle, one direction.
BytesPerSecond nic_bundle_rate(const NodeSpec& node);
/// One GPU's share of the bandwidth of host memory; 0 where the node does not say.
BytesPerSecond host_bandwidth_of_gpu(const NodeSpec& node);

/// A host with one GPU and no network, to run a GPU of the catalog without describing a server.
/// Ids are the GPU's id.
NodeSpec single_gpu_node(const GpuSpec& gpu);
ClusterSpec single_gpu_cluster(const GpuSpec& gpu);

}  // namespace tessera
