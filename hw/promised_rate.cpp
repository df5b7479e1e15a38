#include "hw/promised_rate.h"

#include <string>

namespace tessera {
namespace {

double share_of_fabric(const ClusterSpec& cluster) {
  switch (cluster.fabric.kind) {
    case FabricKind::dragonfly:
    case FabricKind::torus:
      return cluster.fabric.link_efficiency;
    case FabricKind::graph:  // its cables have usable rates
      return 1;
    default:  // as much as the NICs below, or a part of it
      return cluster.node.nic_efficiency;
  }
}

/// Between sockets, and to buffers in the host's memory, a description gives usable rates.
bool is_pcie_slot(const Link& link) {
  const auto names = [&](const char* part) { return link.name.find(part) != std::string::npos; };
  return (names("gpu") || names("pcie_switch")) && !names("staging");
}

/// Share of the line rate that is usable, in (0, 1].
double usable_share(const Link& link, const ClusterSpec& cluster) {
  const NodeSpec& node = cluster.node;
  switch (link.technology) {
    case LinkTechnology::nvlink:
      return node.nvlink_efficiency;
    case LinkTechnology::pcie:
      return is_pcie_slot(link) ? node.pcie_efficiency : 1;
    case LinkTechnology::c2c:
      return node.pcie_efficiency;
    case LinkTechnology::nic:
      return node.nic_efficiency;
    case LinkTechnology::fabric:
      return share_of_fabric(cluster);
    default:
      return 1;
  }
}

}  // namespace

BytesPerSecond promised_rate(const Link& link, const ClusterSpec& cluster) {
  return link.bandwidth / usable_share(link, cluster);
}

}  // namespace tessera
