#include "hw/node.h"

#include <algorithm>

#include "hw/link_rates.h"

namespace tessera {
int nic_bundles(const NodeSpec& node) {
  return std::min(node.nic_count, node.gpu_count);
}

BytesPerSecond nic_bundle_rate(const NodeSpec& node) {
  const int bundles = nic_bundles(node);
  const int nics = bundles == 0 ? 0 : node.nic_count / bundles;
  return node.nic_bandwidth * node.nic_efficiency * nics;
}

BytesPerSecond host_bandwidth_of_gpu(const NodeSpec& node) {
  return node.host_memory_bandwidth * (static_cast<double>(node.sockets) / node.gpu_count);
}

NodeSpec single_gpu_node(const GpuSpec& gpu) {
  NodeSpec node;
  node.id = gpu.id;
  node.gpu = gpu;
  node.gpu_count = 1;
  node.pcie_efficiency = kPinnedCopyShare;
  node.pcie_latency = kPcieHop;
  return node;
}

ClusterSpec single_gpu_cluster(const GpuSpec& gpu) {
  ClusterSpec cluster;
  cluster.id = gpu.id;
  cluster.node = single_gpu_node(gpu);
  return cluster;
}

}  // namespace tessera
