#pragma once

#include <span>
#include <string>
#include <vector>

#include "hw/node.h"
#include "hw/units/id.h"
#include "hw/units/quantity.h"

namespace tessera {

enum class LinkTechnology : std::uint8_t { nvlink, pcie, c2c, nic };

/// One direction of a link. Two directions of a cable are two Links and never share bandwidth.
struct Link {
  std::string name;  ///< "node0/gpu0->gpu1", "node0/gpu2->nvswitch", "node1/nic3->fabric"
  LinkTechnology technology = LinkTechnology::nvlink;
  BytesPerSecond bandwidth;  ///< usable rate: line rate x efficiency
  Seconds latency;
  int lanes = 1;  ///< NVLinks in the bundle; 1 for the rest
};

/// The way from one GPU to another, in order.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;  ///< sum over the links
};

/// Links of a cluster and the routes over them. GPUs are numbered node by node: rank r is GPU r %
/// gpus of node r / gpus.
class Topology {
 public:
  explicit Topology(const ClusterSpec& cluster);

  std::span<const Link> links() const { return links_; }
  const Link& link(LinkId id) const { return links_[static_cast<std::size_t>(id.index())]; }
  const ClusterSpec& cluster() const { return cluster_; }
  int gpu_count() const { return cluster_.gpu_count(); }

  /// Shortest way from GPU `from` to GPU `to`; a cube mesh without a direct link goes through a
  /// neighbour GPU.
  Route route(int from, int to) const;
  /// From host memory of `gpu`'s socket to the GPU (host-to-device); `device_to_host` is the way
  /// back.
  Route host_to_device(int gpu) const;
  Route device_to_host(int gpu) const;

 private:
  ClusterSpec cluster_;
  std::vector<Link> links_;
};

}  // namespace tessera
