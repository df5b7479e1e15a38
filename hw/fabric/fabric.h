#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/fabric/switch_graph.h"
#include "hw/node.h"

namespace tessera {

/// The network between the NICs of a cluster. A port is a NIC: node * NICs of a node + NIC.
/// Regular fabrics compute ways from the numbers of the ports; nothing is stored per pair.
class Fabric {
 public:
  virtual ~Fabric() = default;

  const SwitchGraph& graph() const { return graph_; }
  /// Where a port is plugged in; in `graph` fabrics the port's own place.
  virtual int place_of_port(int port) const = 0;

  /// Positions in `graph().links()`, in order; empty where both ports sit at one place. The hash
  /// picks one of several equal ways. Missing links are avoided: another hash first, then any way
  /// with the fewest hops. Throws InputError where there is none.
  std::vector<int> way(int from_port, int to_port, std::uint64_t hash) const;

  /// Ports that cannot reach the first port, or that it cannot reach.
  std::vector<int> cut_off_ports(int port_count) const;

  /// Called once per missing link, before any way is asked for.
  void remove(int link) { graph_.remove(link); }
  /// Called after the last one.
  virtual void settle() {}

 protected:
  /// May cross missing links. Between two different places.
  virtual std::vector<int> computed_way(int from_port, int to_port, std::uint64_t hash) const = 0;

  SwitchGraph graph_;
};

/// The fabric of a cluster; `cluster.fabric` has no problems.
std::unique_ptr<Fabric> make_fabric(const ClusterSpec& cluster);

std::unique_ptr<Fabric> make_plain_switch();
std::unique_ptr<Fabric> make_clos(const ClusterSpec& cluster);  ///< rail_optimized too
std::unique_ptr<Fabric> make_dragonfly(const ClusterSpec& cluster);
std::unique_ptr<Fabric> make_torus(const ClusterSpec& cluster);
std::unique_ptr<Fabric> make_graph_fabric(const ClusterSpec& cluster);

/// "4x4x2" as numbers; empty for anything else or numbers outside 1 to 100000.
std::vector<int> parse_dimensions(const std::string& text);

}  // namespace tessera
