// Torus: routers joined to their neighbours in every dimension, the last one to the first.
#include "hw/fabric/fabric.h"

namespace tessera {
namespace {

/// Routers are numbered with the last dimension fastest. Ways go dimension by dimension, the short
/// way round; half way round, the hash decides. A dimension of two has one cable, not two.
class Torus : public Fabric {
 public:
  explicit Torus(const ClusterSpec& cluster)
      : spec_(cluster.fabric), sizes_(parse_dimensions(spec_.dimensions)) {
    for (const int size : sizes_) routers_ *= size;
    ports_per_router_ = cluster.node_count * nic_bundles(cluster.node) / routers_;
    for (int router = 0; router < routers_; ++router) graph_.add_place(name_of(router));
    first_link_.resize(static_cast<std::size_t>(routers_) * sizes_.size(), -1);
    for (int router = 0; router < routers_; ++router) {
      for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension) {
        add_cable_up(router, dimension);
      }
    }
  }

  int place_of_port(int port) const override { return port / ports_per_router_; }

 protected:
  std::vector<int> computed_way(int from_port, int to_port, std::uint64_t hash) const override {
    int at = place_of_port(from_port);
    const int to = place_of_port(to_port);
    std::vector<int> way;
    for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension) {
      const int size = sizes_[dimension];
      const int ahead = (position(to, dimension) - position(at, dimension) + size) % size;
      const bool tie = 2 * ahead == size;
      const bool up = tie ? (hash >> dimension) % 2 == 0 : 2 * ahead < size;
      for (int hops = up ? ahead : size - ahead; hops > 0 && ahead > 0; --hops) {
        const int next = neighbour(at, dimension, up);
        way.push_back(link(at, next, dimension, up));
        at = next;
      }
    }
    return way;
  }

 private:
  int stride(std::size_t dimension) const {
    int stride = 1;
    for (std::size_t d = dimension + 1; d < sizes_.size(); ++d) stride *= sizes_[d];
    return stride;
  }
  int position(int router, std::size_t dimension) const {
    return router / stride(dimension) % sizes_[dimension];
  }
  int neighbour(int router, std::size_t dimension, bool up) const {
    const int size = sizes_[dimension];
    const int here = position(router, dimension);
    const int there = (here + (up ? 1 : size - 1)) % size;
    return router + (there - here) * stride(dimension);
  }
  std::string name_of(int router) const {
    std::string name = "router";
    for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension) {
      name += (dimension == 0 ? "" : ".") + std::to_string(position(router, dimension));
    }
    return name;
  }

  int& first_link(int router, std::size_t dimension) {
    return first_link_[static_cast<std::size_t>(router) * sizes_.size() + dimension];
  }

  /// The cable to the next router of a dimension; with two routers, that of the first serves both.
  void add_cable_up(int router, std::size_t dimension) {
    const int size = sizes_[dimension];
    if (size == 1 || (size == 2 && position(router, dimension) == 1)) return;
    Link hop;
    hop.bandwidth = spec_.link_bandwidth * spec_.link_efficiency;
    hop.latency = spec_.link_latency;
    const int next = neighbour(router, dimension, true);
    first_link(router, dimension) = graph_.add_cable(router, next, hop);
  }

  int link(int from, int to, std::size_t dimension, bool up) const {
    if (sizes_[dimension] == 2) up = position(from, dimension) == 0;
    const int owner = up ? from : to;
    const std::size_t cell = static_cast<std::size_t>(owner) * sizes_.size() + dimension;
    return first_link_[cell] + (up ? 0 : 1);
  }

  FabricSpec spec_;
  std::vector<int> sizes_;
  int routers_ = 1;
  int ports_per_router_ = 1;
  std::vector<int> first_link_;  ///< per router and dimension: the link up; the way back follows
};

}  // namespace

std::unique_ptr<Fabric> make_torus(const ClusterSpec& cluster) {
  return std::make_unique<Torus>(cluster);
}

}  // namespace tessera
