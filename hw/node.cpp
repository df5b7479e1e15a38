#include "hw/node.h"

#include <algorithm>

namespace tessera {
namespace {

/// Pinned copies reach 13.3 of 15.75 GB/s (gen 3, V100), 24.8-26.3 of 31.5 (gen 4, A100) and
/// 51-55.6 of 63 (gen 5, H100): 0.79 to 0.88 of the line rate. Sources: Rapid-LLM v100.yaml, NVIDIA
/// forum 352186, Azure/AI-benchmarking-guide, NVbandwidth sample output.
constexpr double kPinnedCopyEfficiency = 0.82;

/// One way over a PCIe switch or root port; recalled, not confirmed.
constexpr Seconds kPcieHopLatency = 0.5_us;

}  // namespace

int nic_bundles(const NodeSpec& node) {
  return std::min(node.nic_count, node.gpu_count);
}

BytesPerSecond nic_bundle_rate(const NodeSpec& node) {
  const int bundles = nic_bundles(node);
  const int nics = bundles == 0 ? 0 : node.nic_count / bundles;
  return node.nic_bandwidth * node.nic_efficiency * nics;
}

NodeSpec single_gpu_node(const GpuSpec& gpu) {
  NodeSpec node;
  node.id = gpu.id;
  node.gpu = gpu;
  node.gpu_count = 1;
  node.pcie_efficiency = kPinnedCopyEfficiency;
  node.pcie_latency = kPcieHopLatency;
  return node;
}

ClusterSpec single_gpu_cluster(const GpuSpec& gpu) {
  ClusterSpec cluster;
  cluster.id = gpu.id;
  cluster.node = single_gpu_node(gpu);
  return cluster;
}

}  // namespace tessera
