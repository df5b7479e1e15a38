#include "hw/box.h"

#include <string>

namespace tessera {
namespace {

constexpr int kMostDirectGpus = 4;  // larger boards have NVSwitches

/// One hop; stas00/ml-engineering network/README.md.
constexpr Seconds kNvlinkLatency = 1_us;

/// Share of an NVLink's line rate that NCCL plans with, by link generation: 18 of 20, 20 of 25, 20
/// of 25, 20.6 of 25 and 40.1 of 50 GB/s. Source: NVIDIA/nccl src/graph/topo.h.
double nvlink_efficiency(int generation) {
  switch (generation) {
    case 1:
      return 0.9;
    case 2:
    case 3:
      return 0.8;
    case 4:
      return 0.824;
    default:
      return 0.802;
  }
}

/// Cards have NVLink only through bridges between two of them.
bool has_soldered_nvlink(const GpuSpec& gpu) {
  const bool board = gpu.id.find("SXM") != std::string::npos || gpu.c2c_bandwidth.value() > 0;
  return board && gpu.nvlink_links > 0;
}

void join_directly(NodeSpec& node) {
  node.interconnect = GpuInterconnect::direct;
  const int links = node.gpu.nvlink_links / (node.gpu_count - 1);
  for (int first = 0; first < node.gpu_count; ++first) {
    for (int second = first + 1; second < node.gpu_count; ++second) {
      node.pairs.push_back({first, second, links});
    }
  }
}

}  // namespace

ClusterSpec box_of(const GpuSpec& gpu, int gpus) {
  ClusterSpec cluster = single_gpu_cluster(gpu);
  NodeSpec& node = cluster.node;
  node.gpu_count = gpus;
  if (gpus == 1 || !has_soldered_nvlink(gpu)) return cluster;
  node.nvlink_bandwidth_per_link = gpu.nvlink_bandwidth / static_cast<double>(gpu.nvlink_links);
  node.nvlink_efficiency = nvlink_efficiency(gpu.nvlink_generation);
  node.nvlink_latency = kNvlinkLatency;
  if (gpus <= kMostDirectGpus) {
    join_directly(node);
  } else {
    node.interconnect = GpuInterconnect::nvswitch;
  }
  return cluster;
}

}  // namespace tessera
