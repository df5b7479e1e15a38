// Dragonfly: all to all inside a group of switches, all to all between groups.
#include <algorithm>

#include "hw/fabric/fabric.h"

namespace tessera {
namespace {

/// Ports fill switch after switch, switches group after group. Link k between groups g and h leaves
/// g at switch (position of h in g's list of other groups * global links + k) mod switches. Ways
/// are minimal: at most one link inside each of the two groups and one between them, which leaves
/// the sender's own switch where that has one.
class Dragonfly : public Fabric {
 public:
  explicit Dragonfly(const ClusterSpec& cluster) : spec_(cluster.fabric) {
    const int ports = cluster.node_count * nic_bundles(cluster.node);
    const int group_ports = spec_.nics_per_switch * spec_.switches_per_group;
    groups_ = (ports + group_ports - 1) / group_ports;
    for (int group = 0; group < groups_; ++group) {
      for (int s = 0; s < switches(); ++s) {
        graph_.add_place("group" + std::to_string(group) + ".switch" + std::to_string(s));
      }
    }
    for (int group = 0; group < groups_; ++group) add_local_links(group);
    for (int low = 0; low < groups_; ++low) {
      for (int high = low + 1; high < groups_; ++high) add_global_links(low, high);
    }
  }

  int place_of_port(int port) const override { return port / spec_.nics_per_switch; }

 protected:
  std::vector<int> computed_way(int from_port, int to_port, std::uint64_t hash) const override {
    const int from = place_of_port(from_port);
    const int to = place_of_port(to_port);
    const int from_group = from / switches();
    const int to_group = to / switches();
    if (from_group == to_group) return {local_link(from, to)};
    const int k = chosen_link(from, to_group, hash);
    const int out = gateway(from_group, to_group, k);
    const int in = gateway(to_group, from_group, k);
    std::vector<int> way;
    if (out != from) way.push_back(local_link(from, out));
    way.push_back(global_link(from_group, to_group, k));
    if (in != to) way.push_back(local_link(in, to));
    return way;
  }

 private:
  int switches() const { return spec_.switches_per_group; }

  /// Switch of `group` that holds link k to `other`.
  int gateway(int group, int other, int k) const {
    const int position = (other - group - 1 + groups_) % groups_;
    return group * switches() + (position * spec_.global_links + k) % switches();
  }

  /// A link that leaves the switch `from` itself, if there is one, else any; by hash among equals.
  int chosen_link(int from, int to_group, std::uint64_t hash) const {
    const auto links = static_cast<std::uint64_t>(spec_.global_links);
    std::uint64_t own = 0;
    const auto is_own = [&](std::uint64_t k) {
      return gateway(from / switches(), to_group, static_cast<int>(k)) == from;
    };
    for (std::uint64_t k = 0; k < links; ++k) own += is_own(k) ? 1 : 0;
    if (own == 0) return static_cast<int>(hash % links);
    std::uint64_t left = hash % own;
    std::uint64_t k = 0;
    while (!is_own(k) || left-- > 0) ++k;
    return static_cast<int>(k);
  }

  /// Number of the unordered pair low < high of `count` things, in lexicographic order.
  static int pair_number(int low, int high, int count) {
    return low * (2 * count - low - 1) / 2 + high - low - 1;
  }

  int local_link(int from, int to) const {
    const int group = from / switches();
    const int a = from % switches();
    const int b = to % switches();
    const int pairs = switches() * (switches() - 1) / 2;
    const int cable = group * pairs + pair_number(std::min(a, b), std::max(a, b), switches());
    return 2 * cable + (a < b ? 0 : 1);
  }

  int global_link(int from, int to, int k) const {
    const int local = groups_ * (switches() * (switches() - 1) / 2);
    const int pair = pair_number(std::min(from, to), std::max(from, to), groups_);
    return 2 * (local + pair * spec_.global_links + k) + (from < to ? 0 : 1);
  }

  void add_local_links(int group) {
    for (int a = 0; a < switches(); ++a) {
      for (int b = a + 1; b < switches(); ++b) {
        graph_.add_cable(group * switches() + a, group * switches() + b, hop(spec_.link_bandwidth));
      }
    }
  }

  void add_global_links(int low, int high) {
    for (int k = 0; k < spec_.global_links; ++k) {
      graph_.add_cable(gateway(low, high, k), gateway(high, low, k), hop(spec_.global_bandwidth));
    }
  }

  Link hop(BytesPerSecond rate) const {
    Link link;
    link.bandwidth = rate * spec_.link_efficiency;
    link.latency = spec_.link_latency;
    return link;
  }

  FabricSpec spec_;
  int groups_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_dragonfly(const ClusterSpec& cluster) {
  return std::make_unique<Dragonfly>(cluster);
}

}  // namespace tessera
