#include "hw/node.h"

namespace tessera {
namespace {

/// Pinned copies reach 13.3 of 15.75 GB/s (gen 3, V100), 24.8-26.3 of 31.5 (gen 4, A100) and
/// 51-55.6 of 63 (gen 5, H100): 0.79 to 0.88 of the line rate. Sources: Rapid-LLM v100.yaml, NVIDIA
/// forum 352186, Azure/AI-benchmarking-guide, NVbandwidth sample output.
constexpr double kPinnedCopyEfficiency = 0.82;

/// One way over a PCIe switch or root port; recalled, not confirmed.
constexpr Seconds kPcieHopLatency = 0.5_us;

}  // namespace

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
