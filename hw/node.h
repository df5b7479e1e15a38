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
  none,      ///< only over the host's PCIe tree
  direct,    ///< NVLink bundles between pairs, listed in `NodeSpec::pairs`
  nvswitch,  ///< every GPU's NVLinks go to a non-blocking switch
};

/// A bundle of NVLinks between two GPUs of a node; full duplex.
struct GpuPairLink {
  int first = 0;
  int second = 0;
  int links = 0;  ///< number of NVLinks in the bundle
};

/// One server. Bandwidths are per direction. GPUs and NICs are spread evenly over the sockets, and
/// NICs over the GPUs, in order of their numbers.
struct NodeSpec {
  std::string id;  ///< e.g. "HGX-H100-4"
  GpuSpec gpu;
  int gpu_count = 0;
  GpuInterconnect interconnect = GpuInterconnect::none;
  std::vector<GpuPairLink> pairs;            ///< for `direct`
  BytesPerSecond nvlink_bandwidth_per_link;  ///< raw line rate of one NVLink
  double nvlink_efficiency = 1.0;  ///< share of the line rate that NCCL reaches, in (0, 1]
  Seconds nvlink_latency;          ///< one hop; GPU to GPU over a switch is two
  int gpus_per_pcie_switch = 1;    ///< 1: every GPU has its own way to the host
  int sockets = 1;
  /// Usable, between two sockets; 0 = the sockets are not joined, which nodes allow whose GPUs
  /// never have to meet there.
  BytesPerSecond socket_bandwidth;
  double pcie_efficiency = 1.0;  ///< share of the host link's line rate (PCIe x16 or C2C) that a
                                 ///< copy reaches, in (0, 1]
  Seconds pcie_latency;          ///< one hop
  /// What a copy between two GPUs without NVLink reaches, one direction, where they cannot read
  /// each other's memory (the driver of GeForce cards, an IOMMU): it goes through the host's. 0 =
  /// they can.
  BytesPerSecond staged_bandwidth;
  /// 0 = a node that stands alone. More NICs than GPUs: as many for each GPU, used together as one
  /// bundle (NCCL stripes over them).
  int nic_count = 0;
  BytesPerSecond nic_bandwidth;  ///< per NIC
  double nic_efficiency = 1.0;   ///< in (0, 1]
  Seconds nic_latency;
  Bytes host_memory;
  BytesPerSecond host_memory_bandwidth;  ///< usable, per socket; 0 = never the bottleneck
  int nvme_count = 0;                    ///< drives, spread evenly over the sockets
  BytesPerSecond nvme_read_bandwidth;    ///< per drive
  BytesPerSecond nvme_write_bandwidth;   ///< per drive
  Seconds nvme_latency;
  Watts host_power;  ///< of all but the GPUs; 0 = not known
  std::vector<FigureSource> sources;
};

/// Nodes and the fabric that joins them.
struct ClusterSpec {
  std::string id;
  NodeSpec node;
  int node_count = 1;
  Seconds fabric_latency;  ///< of the first switch behind a NIC
  FabricSpec fabric;       ///< behind it
  std::vector<LinkFault> faults;
  /// Bus bandwidth of an all-reduce of 1 GiB over all GPUs, as nccl-tests count it; 0 = not
  /// measured. sim/collectives/measured_fabric.h says what follows.
  BytesPerSecond measured_all_reduce;
  BytesPerSecond measured_all_gather;  ///< likewise, of an all-gather into 1 GiB; 0 = not measured
  int nodes_per_rack = 0;              ///< 0 = not known
  Watts switch_power;                  ///< of the fabric's switches, for each node; 0 = not known
  /// Of a storage behind the fabric that all nodes share, for what they write; 0 = none.
  BytesPerSecond storage_bandwidth;
  int storage_nodes = 0;  ///< the last nodes, which are no more than the storage's ports
  double pue = 1;         ///< what the site draws over what its nodes draw, at least 1
  std::vector<FigureSource> sources;

  int gpu_count() const { return node.gpu_count * node_count; }
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
