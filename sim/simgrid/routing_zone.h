#pragma once

#include <functional>
#include <map>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hw/topology/topology.h"

namespace tessera {

/// The links that a transfer from one GPU to another crosses.
using RouteOf = std::function<std::vector<LinkId>(int from, int to)>;

/// SimGrid's own zones keep routes in tables or know a few shapes of network. Here a pseudo-host
/// carries its path, and the route between two GPUs is computed when it is asked for.
class RoutingZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  /// With `route_of`, the hosts that are created first are the GPUs, in order.
  RoutingZone(const std::string& name, RouteOf route_of)
      : NetZoneImpl(name), route_of_(std::move(route_of)) {}

  /// Creates the wanted ones of `links`, with latency 0. Before any path is set.
  void create_links(std::span<const Link> links, const std::vector<bool>& wanted);

  /// What a transfer from `host` to itself crosses. `links` have to outlive the run.
  void set_path(const simgrid::s4u::Host& host, std::span<const LinkId> links);

  /// A link that transfers from `host` to itself cross as well; each gets all of its `rate`.
  simgrid::s4u::Link* add_limit(const simgrid::s4u::Host& host, BytesPerSecond rate);

  void get_local_route(const simgrid::kernel::routing::NetPoint* from,
                       const simgrid::kernel::routing::NetPoint* to,
                       simgrid::kernel::routing::Route* route, double* latency) override;

  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}

 private:
  void append(simgrid::kernel::routing::Route& route, std::span<const LinkId> links) const;

  RouteOf route_of_;
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links_;   ///< by LinkId; may be null
  std::unordered_map<unsigned long, std::span<const LinkId>> paths_;  ///< by pseudo-host's number
  std::unordered_map<unsigned long, simgrid::kernel::resource::StandardLinkImpl*> limits_;
};

}  // namespace tessera
