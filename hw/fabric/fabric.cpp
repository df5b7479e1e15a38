#include "hw/fabric/fabric.h"

#include <algorithm>
#include <charconv>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::uint64_t kOtherHashes = 16;  // tried around a missing link, before any detour

class PlainSwitch : public Fabric {
 public:
  PlainSwitch() { graph_.add_place("switch"); }
  int place_of_port(int) const override { return 0; }

 protected:
  std::vector<int> computed_way(int, int, std::uint64_t) const override { return {}; }
};

}  // namespace

std::vector<int> Fabric::way(int from_port, int to_port, std::uint64_t hash) const {
  const int from = place_of_port(from_port);
  const int to = place_of_port(to_port);
  if (from == to) return {};
  std::vector<int> way = computed_way(from_port, to_port, hash);
  if (!graph_.any_missing()) return way;
  const auto is_broken = [&] {
    return std::ranges::any_of(way, [&](int link) { return graph_.is_missing(link); });
  };
  for (std::uint64_t other = 1; other < kOtherHashes && is_broken(); ++other) {
    way = computed_way(from_port, to_port, mixed(hash + other));
  }
  if (!is_broken() && !way.empty()) return way;
  way = graph_.shortest_way(from, to, hash);
  if (way.empty()) {
    throw InputError(Problem{"faults",
                             "the fabric has no way from " +
                                 graph_.places()[static_cast<std::size_t>(from)].name + " to " +
                                 graph_.places()[static_cast<std::size_t>(to)].name,
                             "leave a link between them"});
  }
  return way;
}

std::vector<int> Fabric::cut_off_ports(int port_count) const {
  std::vector<int> cut_off;
  if (port_count == 0) return cut_off;
  const int first = place_of_port(0);
  const std::vector<int> towards = graph_.distances_to(first);
  const std::vector<int> away = graph_.distances_from(first);
  for (int port = 1; port < port_count; ++port) {
    const auto place = static_cast<std::size_t>(place_of_port(port));
    const bool reaches = towards[place] != SwitchGraph::kUnreachable;
    if (!reaches || away[place] == SwitchGraph::kUnreachable) cut_off.push_back(port);
  }
  return cut_off;
}

std::unique_ptr<Fabric> make_plain_switch() {
  return std::make_unique<PlainSwitch>();
}

std::unique_ptr<Fabric> make_fabric(const ClusterSpec& cluster) {
  switch (cluster.fabric.kind) {
    case FabricKind::plain_switch:
      return make_plain_switch();
    case FabricKind::rail_optimized:
    case FabricKind::clos:
      return make_clos(cluster);
    case FabricKind::dragonfly:
      return make_dragonfly(cluster);
    case FabricKind::torus:
      return make_torus(cluster);
    case FabricKind::graph:
      return make_graph_fabric(cluster);
  }
  return make_plain_switch();
}

std::vector<int> parse_dimensions(const std::string& text) {
  std::vector<int> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int size = 0;
    const auto [rest, failure] = std::from_chars(at, end, size);
    constexpr int kMost = 100'000;
    if (failure != std::errc() || size < 1 || size > kMost) return {};
    sizes.push_back(size);
    if (rest == end) return sizes;
    if (*rest != 'x') return {};
    at = rest + 1;
  }
}

}  // namespace tessera
