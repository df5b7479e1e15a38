#include "hw/topology.h"

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

}  // namespace

Topology::Topology(const ClusterSpec& cluster)
    : cluster_(validated(cluster)), node_links_(cluster_.node, cluster_.fabric_latency) {
  for (int node = 0; node < cluster_.node_count; ++node) {
    for (Link link : node_links_.links()) {
      link.name = "node" + std::to_string(node) + "/" + link.name;
      links_.push_back(std::move(link));
    }
  }
}

void Topology::append(Route& route, int node, std::span<const int> node_links) const {
  const int first = node * static_cast<int>(node_links_.links().size());
  for (const int index : node_links) {
    const LinkId id(first + index);
    route.links.push_back(id);
    route.latency += link(id).latency;
  }
}

Route Topology::route(int from, int to) const {
  Route route;
  if (node_of(from) == node_of(to)) {
    append(route, node_of(from), node_links_.gpu_to_gpu(local(from), local(to)));
    return route;
  }
  append(route, node_of(from), node_links_.gpu_to_fabric(local(from)));
  append(route, node_of(to), node_links_.fabric_to_gpu(local(to)));
  return route;
}

Route Topology::host_to_device(int gpu) const {
  Route route;
  append(route, node_of(gpu), node_links_.host_to_gpu(local(gpu)));
  return route;
}

Route Topology::device_to_host(int gpu) const {
  Route route;
  append(route, node_of(gpu), node_links_.gpu_to_host(local(gpu)));
  return route;
}

LinkId Topology::nvlink_bundle(int from, int to) const {
  if (node_of(from) != node_of(to)) return LinkId();
  const int index = node_links_.bundle(local(from), local(to));
  if (index == NodeLinks::kNoLink) return LinkId();
  return LinkId(node_of(from) * static_cast<int>(node_links_.links().size()) + index);
}

}  // namespace tessera
