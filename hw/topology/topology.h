#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hw/link.h"
#include "hw/node.h"
#include "hw/node_links.h"
#include "hw/topology/wiring.h"
#include "hw/units/id.h"
#include "hw/units/quantity.h"

namespace tessera {

/// The way from one end to another, in order.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;  ///< sum over the links
};

/// Links of a cluster and the routes over them. GPUs are numbered node by node: rank r is GPU r %
/// gpus of node r / gpus. Routes are computed from the numbers of the GPUs, there is no table.
class Topology {
 public:
  /// Throws InputError with everything that `problems_of(cluster)` finds.
  explicit Topology(const ClusterSpec& cluster);

  std::span<const Link> links() const { return wiring_->links; }
  const Link& link(LinkId id) const { return wiring_->links[static_cast<std::size_t>(id.index())]; }
  /// Links that `faults` took out: no route has them.
  bool is_missing(LinkId id) const {
    return !wiring_->missing.empty() && wiring_->missing[static_cast<std::size_t>(id.index())];
  }
  const ClusterSpec& cluster() const { return cluster_; }
  int gpu_count() const { return cluster_.gpu_count(); }
  int node_of(int gpu) const { return gpu / cluster_.node.gpu_count; }

  /// Shortest way from GPU `from` to GPU `to`; a cube mesh without a direct link goes through a
  /// neighbour GPU. Empty for a GPU to itself. Between nodes it leaves through the NIC of `from`;
  /// on a rail-optimized fabric through the NIC on the rail of `to`, over the NVLink neighbour that
  /// owns it (NCCL's PXN). Where the fabric has several equal ways, a hash of source, destination
  /// and `flow` picks one (ECMP): equal arguments, equal way.
  Route route(int from, int to, int flow = 0) const;
  /// From host memory of `gpu`'s socket to the GPU; `device_to_host` is the way back.
  Route host_to_device(int gpu) const;
  Route device_to_host(int gpu) const;
  /// From the host memory that `gpu` copies to, through the NIC that `gpu` sends through, out of
  /// the node; and on to the storage where the cluster has one. No links where the node has no NIC.
  Route host_to_network(int gpu) const;
  /// What all of the storage shares; invalid where there is none.
  LinkId storage_link() const;
  /// From the drives of the GPU's socket (the next with drives) and back; only with `has_nvme`.
  Route nvme_to_device(int gpu) const;
  Route device_to_nvme(int gpu) const;
  bool has_nvme() const { return wiring_->node.has_nvme(); }

  /// The NVLink bundle that leads straight from one GPU to another; invalid where there is none.
  LinkId nvlink_bundle(int from, int to) const;
  /// NIC of its node that `gpu` sends through; the node must have one. Several NICs of one GPU
  /// count as one.
  int nic_of(int gpu) const { return node_links(node_of(gpu)).nic_of(local(gpu)); }

  const NodeLinks& node_links(int node) const;
  const Fabric& fabric() const { return *wiring_->fabric; }
  LinkId link_of_node(int node, int index) const;  ///< `index` as in `node_links`
  LinkId link_of_fabric(int index) const;          ///< `index` as in `fabric().graph()`

 private:
  int local(int gpu) const { return gpu % cluster_.node.gpu_count; }
  int port_of(int gpu) const { return node_of(gpu) * wiring_->node.nic_count() + nic_of(gpu); }
  int exit_gpu(int from, int to) const;
  void append(Route& route, LinkId id) const;
  void append(Route& route, int node, std::span<const int> node_links) const;
  void append_fabric(Route& route, int from, int to, int flow) const;

  ClusterSpec cluster_;
  std::shared_ptr<const Wiring> wiring_;  ///< shared by copies
};

}  // namespace tessera
