#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/link.h"
#include "hw/node.h"
#include "hw/node_links.h"
#include "hw/units/id.h"
#include "hw/units/quantity.h"

namespace tessera {

/// The way from one end to another, in order.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;  ///< sum over the links
};

/// Links of a cluster and the routes over them. GPUs are numbered node by node: rank r is GPU r %
/// gpus of node r / gpus.
class Topology {
 public:
  /// Throws InputError with everything that `problems_of(cluster)` finds.
  explicit Topology(const ClusterSpec& cluster);

  std::span<const Link> links() const { return links_; }
  const Link& link(LinkId id) const { return links_[static_cast<std::size_t>(id.index())]; }
  const ClusterSpec& cluster() const { return cluster_; }
  int gpu_count() const { return cluster_.gpu_count(); }
  int node_of(int gpu) const { return gpu / cluster_.node.gpu_count; }

  /// Shortest way from GPU `from` to GPU `to`; a cube mesh without a direct link goes through a
  /// neighbour GPU. Empty for a GPU to itself.
  Route route(int from, int to) const;
  /// From host memory of `gpu`'s socket to the GPU; `device_to_host` is the way back.
  Route host_to_device(int gpu) const;
  Route device_to_host(int gpu) const;

  /// The NVLink bundle that leads straight from one GPU to another; invalid where there is none.
  LinkId nvlink_bundle(int from, int to) const;
  /// NIC of its node that `gpu` sends through; the node must have one.
  int nic_of(int gpu) const { return node_links_.nic_of(local(gpu)); }

 private:
  int local(int gpu) const { return gpu % cluster_.node.gpu_count; }
  void append(Route& route, int node, std::span<const int> node_links) const;

  ClusterSpec cluster_;
  NodeLinks node_links_;
  std::vector<Link> links_;  ///< node by node, each in the order of `node_links_`
};

}  // namespace tessera
