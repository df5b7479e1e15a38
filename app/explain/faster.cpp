#include "app/explain/faster.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kResourceCount> kResourceLabels{
    "flops", "memory_bandwidth", "host", "nvlink", "pcie", "network", "latency"};
constexpr std::array<std::string_view, kResourceCount> kResourceMeanings{
    "arithmetic of the GPUs (all peaks, clocks and power)",
    "memory bandwidth of the GPUs",
    "the host (launching kernels and collectives)",
    "NVLink bandwidth",
    "PCIe, chip-to-chip and socket bandwidth",
    "network bandwidth (NICs and fabric)",
    "latency of all links"};

void scale_arithmetic(GpuSpec& gpu, double factor) {
  for (FlopsPerSecond* peak : {&gpu.fp32, &gpu.fp32_matrix, &gpu.tf32, &gpu.bf16, &gpu.fp16,
                               &gpu.fp8, &gpu.int8, &gpu.fp4})
    *peak = *peak * factor;
  gpu.boost_clock = gpu.boost_clock * factor;
  gpu.tensor_clock = gpu.tensor_clock * factor;
  gpu.tdp = gpu.tdp * factor;
}

void scale_host(HostTable& host, double factor) {
  host.factor = host.factor / factor;
}

void scale_nvlink(NodeSpec& node, double factor) {
  node.nvlink_bandwidth_per_link = node.nvlink_bandwidth_per_link * factor;
  node.gpu.nvlink_bandwidth = node.gpu.nvlink_bandwidth * factor;
}

void scale_pcie(NodeSpec& node, double factor) {
  for (BytesPerSecond* bandwidth : {&node.gpu.pcie_bandwidth, &node.gpu.c2c_bandwidth,
                                    &node.socket_bandwidth, &node.staged_bandwidth})
    *bandwidth = *bandwidth * factor;
}

void scale_network(ClusterSpec& cluster, double factor) {
  cluster.node.nic_bandwidth = cluster.node.nic_bandwidth * factor;
  cluster.fabric.global_bandwidth = cluster.fabric.global_bandwidth * factor;
  cluster.fabric.link_bandwidth = cluster.fabric.link_bandwidth * factor;
  for (FabricCable& cable : cluster.fabric.links) cable.bandwidth = cable.bandwidth * factor;
}

void scale_latency(ClusterSpec& cluster, double factor) {
  for (Seconds* latency :
       {&cluster.node.nvlink_latency, &cluster.node.pcie_latency, &cluster.node.nic_latency,
        &cluster.node.nic_ring_latency, &cluster.fabric_latency, &cluster.fabric.link_latency})
    *latency = *latency / factor;
  for (FabricCable& cable : cluster.fabric.links) cable.latency = cable.latency / factor;
}

}  // namespace

std::array<Resource, kResourceCount> all_resources() {
  std::array<Resource, kResourceCount> resources{};
  for (std::size_t i = 0; i < resources.size(); ++i) resources[i] = static_cast<Resource>(i);
  return resources;
}

std::string_view label_of(Resource resource) {
  return kResourceLabels[static_cast<std::size_t>(resource)];
}

std::string_view meaning_of(Resource resource) {
  return kResourceMeanings[static_cast<std::size_t>(resource)];
}

Scenario with_faster(Scenario scenario, Resource resource, double factor) {
  switch (resource) {
    case Resource::flops:
      scale_arithmetic(scenario.cluster.node.gpu, factor);
      break;
    case Resource::memory_bandwidth:
      scenario.cluster.node.gpu.memory_bandwidth =
          scenario.cluster.node.gpu.memory_bandwidth * factor;
      break;
    case Resource::host:
      scale_host(scenario.step.host, factor);
      break;
    case Resource::nvlink:
      scale_nvlink(scenario.cluster.node, factor);
      break;
    case Resource::pcie:
      scale_pcie(scenario.cluster.node, factor);
      break;
    case Resource::network:
      scale_network(scenario.cluster, factor);
      break;
    case Resource::latency:
      scale_latency(scenario.cluster, factor);
      break;
  }
  return scenario;
}

bool has_resource(const Scenario& scenario, Resource resource) {
  const NodeSpec& node = scenario.cluster.node;
  const bool one_gpu = scenario.step.layout.world_size() == 1;
  switch (resource) {
    case Resource::nvlink:
      return !one_gpu && node.interconnect != GpuInterconnect::none;
    case Resource::network:
      return !one_gpu && scenario.cluster.node_count > 1;
    case Resource::pcie:
    case Resource::latency:
      return !one_gpu;
    default:
      return true;
  }
}

}  // namespace tessera
