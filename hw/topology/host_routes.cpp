#include "hw/topology/host_routes.h"

#include <vector>

namespace tessera {

Route host_to_network(const Topology& topology, int gpu) {
  Route route;
  const int node = topology.node_of(gpu);
  const NodeLinks& links = topology.node_links(node);
  if (links.nic_count() == 0) return route;
  const int local = gpu % topology.cluster().node.gpu_count;
  std::vector<int> way = links.host_to_gpu(local);  // to its switch, and not on to the GPU
  way.back() = links.gpu_to_fabric(local).back();
  for (const int index : way) {
    const LinkId link = topology.link_of_node(node, index);
    route.links.push_back(link);
    route.latency += topology.link(link).latency;
  }
  return route;
}

}  // namespace tessera
