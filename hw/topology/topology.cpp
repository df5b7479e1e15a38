#include "hw/topology/topology.h"

#include <utility>

#include "hw/units/input_error.h"
#include "hw/validation.h"

namespace tessera {
namespace {

const ClusterSpec& validated(const ClusterSpec& cluster) {
  std::vector<Problem> problems = problems_of(cluster);
  if (!problems.empty()) throw InputError(std::move(problems));
  return cluster;
}

std::shared_ptr<const Wiring> wired(const ClusterSpec& cluster) {
  std::vector<Problem> problems;
  Wiring wiring = wire(cluster, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return std::make_shared<const Wiring>(std::move(wiring));
}

}  // namespace

Topology::Topology(const ClusterSpec& cluster)
    : cluster_(validated(cluster)), wiring_(wired(cluster_)) {}

const NodeLinks& Topology::node_links(int node) const {
  if (wiring_->damaged.empty()) return wiring_->node;
  const auto damaged = wiring_->damaged.find(node);
  return damaged == wiring_->damaged.end() ? wiring_->node : damaged->second;
}

LinkId Topology::link_of_node(int node, int index) const {
  return LinkId(node * static_cast<int>(wiring_->node.links().size()) + index);
}

LinkId Topology::link_of_fabric(int index) const {
  return link_of_node(cluster_.node_count, index);
}

void Topology::append(Route& route, LinkId id) const {
  route.links.push_back(id);
  route.latency += link(id).latency;
}

void Topology::append(Route& route, int node, std::span<const int> node_links) const {
  for (const int index : node_links) append(route, link_of_node(node, index));
}

/// The GPU of `from`'s node through whose NIC a message leaves for another node.
int Topology::exit_gpu(int from, int to) const {
  const bool rails = cluster_.fabric.kind == FabricKind::rail_optimized;
  const bool nvlink = cluster_.node.interconnect != GpuInterconnect::none;
  if (!rails || !nvlink || nic_of(from) == nic_of(to)) return from;
  return node_of(from) * cluster_.node.gpu_count + local(to);
}

void Topology::append_fabric(Route& route, int from, int to, int flow) const {
  const auto ports =
      (static_cast<std::uint64_t>(port_of(from)) << 32U) | static_cast<std::uint64_t>(port_of(to));
  const auto seed = static_cast<std::uint64_t>(cluster_.fabric.hash_seed);
  const std::uint64_t hash = mixed(mixed(mixed(seed) ^ ports) + static_cast<std::uint64_t>(flow));
  for (const int index : wiring_->fabric->way(port_of(from), port_of(to), hash)) {
    append(route, link_of_fabric(index));
  }
}

Route Topology::route(int from, int to, int flow) const {
  constexpr std::size_t kMostLinks = 8;  // of nearly all routes
  Route route;
  route.links.reserve(kMostLinks);
  const NodeLinks& source = node_links(node_of(from));
  if (node_of(from) == node_of(to)) {
    append(route, node_of(from), source.gpu_to_gpu(local(from), local(to)));
    return route;
  }
  const int exit = exit_gpu(from, to);
  append(route, node_of(from), source.gpu_to_gpu(local(from), local(exit)));
  append(route, node_of(from), source.gpu_to_fabric(local(exit)));
  append_fabric(route, exit, to, flow);
  append(route, node_of(to), node_links(node_of(to)).fabric_to_gpu(local(to)));
  return route;
}

Route Topology::host_to_device(int gpu) const {
  Route route;
  append(route, node_of(gpu), node_links(node_of(gpu)).host_to_gpu(local(gpu)));
  return route;
}

Route Topology::device_to_host(int gpu) const {
  Route route;
  append(route, node_of(gpu), node_links(node_of(gpu)).gpu_to_host(local(gpu)));
  return route;
}

Route Topology::host_to_network(int gpu) const {
  Route route;
  const NodeLinks& links = node_links(node_of(gpu));
  if (links.nic_count() == 0) return route;
  std::vector<int> way = links.host_to_gpu(local(gpu));  // to its switch, and not on to the GPU
  way.back() = links.gpu_to_fabric(local(gpu)).back();
  append(route, node_of(gpu), way);
  if (!storage_link().valid()) return route;
  if (cluster_.storage_nodes > 0) {
    const int first = cluster_.node_count - cluster_.storage_nodes;
    const int port = first + node_of(gpu) % cluster_.storage_nodes;
    append_fabric(route, gpu, port * cluster_.node.gpu_count + local(gpu), 0);
  }
  append(route, storage_link());
  return route;
}

LinkId Topology::storage_link() const {
  if (cluster_.storage_bandwidth.value() <= 0) return LinkId();
  return LinkId(static_cast<std::int32_t>(wiring_->links.size()) - 1);
}

Route Topology::nvme_to_device(int gpu) const {
  Route route;
  append(route, node_of(gpu), node_links(node_of(gpu)).nvme_to_gpu(local(gpu)));
  return route;
}

Route Topology::device_to_nvme(int gpu) const {
  Route route;
  append(route, node_of(gpu), node_links(node_of(gpu)).gpu_to_nvme(local(gpu)));
  return route;
}

LinkId Topology::nvlink_bundle(int from, int to) const {
  if (node_of(from) != node_of(to)) return LinkId();
  const int index = node_links(node_of(from)).bundle(local(from), local(to));
  if (index == NodeLinks::kNoLink) return LinkId();
  return link_of_node(node_of(from), index);
}

}  // namespace tessera
