#pragma once

#include <concepts>
#include <type_traits>

#include "hw/gpu.h"
#include "hw/node.h"

namespace tessera {

/// A value or a constant of type `T`.
template <class Self, class T>
concept Of = std::same_as<std::remove_const_t<Self>, T>;

/// `mirror(value, visit)` calls `visit(name, member)` for every member of `value` that the schema
/// has a field for, under the field's name. The one list serves both directions.
void mirror(Of<FigureSource> auto& source, auto&& visit) {
  visit("figures", source.figures);
  visit("source", source.source);
  visit("confirmed", source.confirmed);
}

void mirror(Of<GpuSpec> auto& gpu, auto&& visit) {
  visit("id", gpu.id);
  visit("vendor", gpu.vendor);
  visit("architecture", gpu.architecture);
  visit("compute_capability", gpu.compute_capability);
  visit("die", gpu.die);
  visit("process", gpu.process);
  visit("memory_kind", gpu.memory_kind);
  visit("async_copy", gpu.async_copy);
  visit("form_factor", gpu.form_factor);
  visit("sm_count", gpu.sm_count);
  visit("boost_clock", gpu.boost_clock);
  visit("tensor_clock", gpu.tensor_clock);
  visit("fp32", gpu.fp32);
  visit("fp32_matrix", gpu.fp32_matrix);
  visit("tf32", gpu.tf32);
  visit("bf16", gpu.bf16);
  visit("fp16", gpu.fp16);
  visit("fp8", gpu.fp8);
  visit("int8", gpu.int8);
  visit("fp4", gpu.fp4);
  visit("memory", gpu.memory);
  visit("memory_bandwidth", gpu.memory_bandwidth);
  visit("l2", gpu.l2);
  visit("shared_memory_per_sm", gpu.shared_memory_per_sm);
  visit("registers_per_sm", gpu.registers_per_sm);
  visit("max_threads_per_sm", gpu.max_threads_per_sm);
  visit("max_blocks_per_sm", gpu.max_blocks_per_sm);
  visit("nvlink_generation", gpu.nvlink_generation);
  visit("nvlink_links", gpu.nvlink_links);
  visit("nvlink_bandwidth", gpu.nvlink_bandwidth);
  visit("pcie_generation", gpu.pcie_generation);
  visit("pcie_bandwidth", gpu.pcie_bandwidth);
  visit("c2c_bandwidth", gpu.c2c_bandwidth);
  visit("tdp", gpu.tdp);
  visit("idle_power", gpu.idle_power);
  visit("busy_power", gpu.busy_power);
  visit("power_limit", gpu.power_limit);
  visit("release_year", gpu.release_year);
  visit("price", gpu.price);
  visit("sources", gpu.sources);
}

void mirror(Of<GpuPairLink> auto& pair, auto&& visit) {
  visit("first", pair.first);
  visit("second", pair.second);
  visit("links", pair.links);
}

void mirror(Of<NodeSpec> auto& node, auto&& visit) {
  visit("id", node.id);
  visit("gpu", node.gpu);
  visit("gpu_count", node.gpu_count);
  visit("interconnect", node.interconnect);
  visit("pairs", node.pairs);
  visit("nvlink_bandwidth_per_link", node.nvlink_bandwidth_per_link);
  visit("nvlink_efficiency", node.nvlink_efficiency);
  visit("nvlink_latency", node.nvlink_latency);
  visit("gpus_per_pcie_switch", node.gpus_per_pcie_switch);
  visit("sockets", node.sockets);
  visit("socket_bandwidth", node.socket_bandwidth);
  visit("pcie_efficiency", node.pcie_efficiency);
  visit("pcie_latency", node.pcie_latency);
  visit("staged_bandwidth", node.staged_bandwidth);
  visit("nic_count", node.nic_count);
  visit("nic_bandwidth", node.nic_bandwidth);
  visit("nic_efficiency", node.nic_efficiency);
  visit("nic_latency", node.nic_latency);
  visit("host_memory", node.host_memory);
  visit("host_memory_bandwidth", node.host_memory_bandwidth);
  visit("nvme_count", node.nvme_count);
  visit("nvme_read_bandwidth", node.nvme_read_bandwidth);
  visit("nvme_write_bandwidth", node.nvme_write_bandwidth);
  visit("nvme_latency", node.nvme_latency);
  visit("host_power", node.host_power);
  visit("sources", node.sources);
}

void mirror(Of<FabricCable> auto& cable, auto&& visit) {
  visit("from", cable.from);
  visit("to", cable.to);
  visit("bandwidth", cable.bandwidth);
  visit("latency", cable.latency);
  visit("one_way", cable.one_way);
}

void mirror(Of<FabricSpec> auto& fabric, auto&& visit) {
  visit("kind", fabric.kind);
  visit("nodes_per_leaf", fabric.nodes_per_leaf);
  visit("spines", fabric.spines);
  visit("leaf_oversubscription", fabric.leaf_oversubscription);
  visit("units_per_pod", fabric.units_per_pod);
  visit("cores", fabric.cores);
  visit("pod_oversubscription", fabric.pod_oversubscription);
  visit("nics_per_switch", fabric.nics_per_switch);
  visit("switches_per_group", fabric.switches_per_group);
  visit("global_links", fabric.global_links);
  visit("global_bandwidth", fabric.global_bandwidth);
  visit("dimensions", fabric.dimensions);
  visit("link_bandwidth", fabric.link_bandwidth);
  visit("link_efficiency", fabric.link_efficiency);
  visit("link_latency", fabric.link_latency);
  visit("switches", fabric.switches);
  visit("links", fabric.links);
  visit("hash_seed", fabric.hash_seed);
}

void mirror(Of<LinkFault> auto& fault, auto&& visit) {
  visit("link", fault.link);
  visit("bandwidth_share", fault.bandwidth_share);
  visit("one_way", fault.one_way);
}

void mirror(Of<ClusterSpec> auto& cluster, auto&& visit) {
  visit("id", cluster.id);
  visit("node", cluster.node);
  visit("node_count", cluster.node_count);
  visit("fabric_latency", cluster.fabric_latency);
  visit("fabric", cluster.fabric);
  visit("faults", cluster.faults);
  visit("measured_all_reduce", cluster.measured_all_reduce);
  visit("measured_all_gather", cluster.measured_all_gather);
  visit("pue", cluster.pue);
  visit("nodes_per_rack", cluster.nodes_per_rack);
  visit("switch_power", cluster.switch_power);
  visit("sources", cluster.sources);
}

}  // namespace tessera
