// A fabric of switches and links as a file lists them.
#include <map>

#include "hw/fabric/fabric.h"

namespace tessera {
namespace {

/// Every NIC is a place of its own, so that it may be plugged into several switches. Ways have the
/// fewest hops; the distances to each NIC are found once.
class GraphFabric : public Fabric {
 public:
  explicit GraphFabric(const ClusterSpec& cluster)
      : ports_(cluster.node_count * nic_bundles(cluster.node)) {
    const int nics = nic_bundles(cluster.node);
    std::map<std::string, int> places;
    for (int port = 0; port < ports_; ++port) {
      const std::string name =
          "node" + std::to_string(port / nics) + ".nic" + std::to_string(port % nics);
      places[name] = graph_.add_place(name, port);
    }
    for (const std::string& name : cluster.fabric.switches) places[name] = graph_.add_place(name);
    for (const FabricCable& cable : cluster.fabric.links) {
      Link link;
      link.bandwidth = cable.bandwidth;
      link.latency = cable.latency;
      const int from = places.at(cable.from);
      const int to = places.at(cable.to);
      graph_.add_link(from, to, link);
      if (!cable.one_way) graph_.add_link(to, from, link);
    }
  }

  int place_of_port(int port) const override { return port; }

  void settle() override {
    distances_.clear();
    for (int port = 0; port < ports_; ++port) distances_.push_back(graph_.distances_to(port));
  }

 protected:
  std::vector<int> computed_way(int from_port, int to_port, std::uint64_t hash) const override {
    const std::vector<int>& distance = distances_[static_cast<std::size_t>(to_port)];
    std::vector<int> way;
    int at = from_port;
    if (distance[static_cast<std::size_t>(at)] == SwitchGraph::kUnreachable) return way;
    while (at != to_port) {
      hash = mixed(hash);
      way.push_back(graph_.next_link(at, distance, hash));
      at = graph_.ends()[static_cast<std::size_t>(way.back())].to;
    }
    return way;
  }

 private:
  int ports_;
  std::vector<std::vector<int>> distances_;  ///< to each port, from every place
};

}  // namespace

std::unique_ptr<Fabric> make_graph_fabric(const ClusterSpec& cluster) {
  return std::make_unique<GraphFabric>(cluster);
}

}  // namespace tessera
