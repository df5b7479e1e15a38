#pragma once

#include "hw/node.h"

namespace tessera::boxes {

/// NCCL's usable rate per 25 GB/s link: 20.6 on Hopper, 20 on Volta and Ampere.
inline constexpr double kHopperEfficiency = 20.6 / 25;
inline constexpr double kAmpereEfficiency = 20.0 / 25;

inline GpuSpec gpu(const char* id, Architecture architecture, const char* compute_capability,
                   int nvlink_links) {
  GpuSpec spec;
  spec.id = id;
  spec.vendor = "NVIDIA";
  spec.architecture = architecture;
  spec.compute_capability = compute_capability;
  spec.sm_count = 100;
  spec.boost_clock = Hertz(1.5e9);
  spec.fp32 = 20_TFLOPS;
  spec.memory = 40_GiB;
  spec.memory_bandwidth = 2000_GBps;
  spec.nvlink_links = nvlink_links;
  spec.nvlink_bandwidth = 25_GBps * nvlink_links;
  spec.pcie_bandwidth = 32_GBps;
  return spec;
}

inline NodeSpec node(const char* id, const GpuSpec& gpu, int gpu_count) {
  NodeSpec spec;
  spec.id = id;
  spec.gpu = gpu;
  spec.gpu_count = gpu_count;
  spec.nvlink_bandwidth_per_link = 25_GBps;
  spec.nvlink_latency = 1_us;
  spec.pcie_latency = 0.5_us;
  return spec;
}

inline NodeSpec full_mesh(NodeSpec node, int links_per_pair) {
  node.interconnect = GpuInterconnect::direct;
  for (int a = 0; a < node.gpu_count; ++a) {
    for (int b = a + 1; b < node.gpu_count; ++b) node.pairs.push_back({a, b, links_per_pair});
  }
  return node;
}

inline ClusterSpec alone(const NodeSpec& node) {
  ClusterSpec cluster;
  cluster.id = node.id;
  cluster.node = node;
  return cluster;
}

/// HGX H100 4-GPU: 6 links between every pair.
inline NodeSpec h100_mesh() {
  NodeSpec spec = full_mesh(node("HGX-H100-4", gpu("H100", Architecture::hopper, "9.0", 18), 4), 6);
  spec.nvlink_efficiency = kHopperEfficiency;
  return spec;
}

/// HGX A100 4-GPU: 4 links between every pair.
inline NodeSpec a100_mesh() {
  NodeSpec spec = full_mesh(node("HGX-A100-4", gpu("A100", Architecture::ampere, "8.0", 12), 4), 4);
  spec.nvlink_efficiency = kAmpereEfficiency;
  return spec;
}

/// HGX A100 8-GPU: 12 links of every GPU to the switch, one 25 GB/s NIC per GPU.
inline NodeSpec a100_switch() {
  NodeSpec spec = node("DGX-A100", gpu("A100", Architecture::ampere, "8.0", 12), 8);
  spec.interconnect = GpuInterconnect::nvswitch;
  spec.nvlink_efficiency = kAmpereEfficiency;
  spec.nic_count = 8;
  spec.nic_bandwidth = 25_GBps;
  spec.nic_latency = 1_us;
  return spec;
}

/// DGX-1 V100 hybrid cube mesh; links of every pair as `nvidia-smi topo -m` prints them.
inline NodeSpec v100_cube_mesh() {
  NodeSpec spec = node("DGX-1-V100", gpu("V100", Architecture::volta, "7.0", 6), 8);
  spec.interconnect = GpuInterconnect::direct;
  spec.nvlink_efficiency = 20.0 / 25;
  spec.pairs = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  return spec;
}

/// Four GPUs, two under each PCIe switch, one switch per socket.
inline NodeSpec pcie_box() {
  NodeSpec spec = node("A100-PCIe-4", gpu("A100", Architecture::ampere, "8.0", 12), 4);
  spec.gpus_per_pcie_switch = 2;
  spec.sockets = 2;
  spec.socket_bandwidth = 16_GBps;
  return spec;
}

}  // namespace tessera::boxes
