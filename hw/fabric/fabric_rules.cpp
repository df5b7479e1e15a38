#include "hw/fabric/fabric_rules.h"

#include <set>

#include "hw/fabric/fabric.h"

namespace tessera {
namespace {

/// Keeps the tables of a `graph` fabric (NICs x places) below 64 MB.
constexpr std::int64_t kMostDistances = 16'000'000;
/// Keeps a mistyped size from costing all memory.
constexpr std::int64_t kMostSwitchLinks = 2'000'000;
/// The largest built tori have six; every router has a cable per dimension.
constexpr std::size_t kMostDimensions = 16;

int port_count(const ClusterSpec& cluster) {
  return cluster.node_count * nic_bundles(cluster.node);
}

void require_below(std::int64_t links, const std::string& where, Findings& findings) {
  findings.require(links <= kMostSwitchLinks, where,
                   where + ": " + std::to_string(links) + " links between switches",
                   "use smaller numbers; up to " + std::to_string(kMostSwitchLinks) + " links");
}

void check_clos(const ClusterSpec& cluster, Findings& findings) {
  const FabricSpec& fabric = cluster.fabric;
  findings.require_at_least(fabric.nodes_per_leaf, 1, "fabric.nodes_per_leaf");
  findings.require_at_least(fabric.units_per_pod, 0, "fabric.units_per_pod");
  findings.require_positive(fabric.leaf_oversubscription, "fabric.leaf_oversubscription");
  findings.require_positive(fabric.pod_oversubscription, "fabric.pod_oversubscription");
  if (!findings.empty()) return;
  const int units = (cluster.node_count + fabric.nodes_per_leaf - 1) / fabric.nodes_per_leaf;
  const bool rail = fabric.kind == FabricKind::rail_optimized;
  const std::int64_t leaves = std::int64_t{units} * (rail ? nic_bundles(cluster.node) : 1);
  if (leaves > 1) findings.require_at_least(fabric.spines, 1, "fabric.spines");
  if (fabric.units_per_pod > 0 && units > fabric.units_per_pod) {
    findings.require_at_least(fabric.cores, 1, "fabric.cores");
    const std::int64_t pods = (units + fabric.units_per_pod - 1) / fabric.units_per_pod;
    require_below(2 * pods * fabric.spines * std::int64_t{fabric.cores}, "fabric.cores", findings);
  }
  require_below(2 * leaves * fabric.spines, "fabric.spines", findings);
}

void check_switch_links(const FabricSpec& fabric, Findings& findings) {
  findings.require_positive(fabric.link_bandwidth.value(), "fabric.link_bandwidth");
  findings.require_share(fabric.link_efficiency, "fabric.link_efficiency");
}

void check_dragonfly(const ClusterSpec& cluster, Findings& findings) {
  const FabricSpec& fabric = cluster.fabric;
  check_switch_links(fabric, findings);
  findings.require_at_least(fabric.nics_per_switch, 1, "fabric.nics_per_switch");
  findings.require_at_least(fabric.switches_per_group, 1, "fabric.switches_per_group");
  findings.require_at_least(fabric.global_links, 1, "fabric.global_links");
  if (!findings.empty()) return;
  const std::int64_t per_group = std::int64_t{fabric.nics_per_switch} * fabric.switches_per_group;
  const std::int64_t groups = (port_count(cluster) + per_group - 1) / per_group;
  if (groups > 1) {
    findings.require_positive(fabric.global_bandwidth.value(), "fabric.global_bandwidth");
  }
  const std::int64_t local = std::int64_t{fabric.switches_per_group} * fabric.switches_per_group;
  require_below(groups * local, "fabric.switches_per_group", findings);
  require_below(groups * groups * fabric.global_links, "fabric.global_links", findings);
}

void check_torus(const ClusterSpec& cluster, Findings& findings) {
  check_switch_links(cluster.fabric, findings);
  const std::vector<int> sizes = parse_dimensions(cluster.fabric.dimensions);
  const bool few = sizes.size() <= kMostDimensions;
  findings.require(few, "fabric.dimensions",
                   "fabric.dimensions gives " + std::to_string(sizes.size()) + " sizes",
                   "give up to " + std::to_string(kMostDimensions) + ", such as 4x4x4");
  if (!few) return;
  std::int64_t routers = sizes.empty() ? 0 : 1;
  for (const int size : sizes) routers = std::min<std::int64_t>(routers * size, 1 << 30);
  findings.require(routers == cluster.node_count || routers == port_count(cluster),
                   "fabric.dimensions",
                   "fabric.dimensions = \"" + cluster.fabric.dimensions + "\" gives " +
                       std::to_string(routers) + " routers",
                   "use sizes such as 4x4x4 whose product is the number of nodes (" +
                       std::to_string(cluster.node_count) + ") or of NICs (" +
                       std::to_string(port_count(cluster)) + ")");
}

std::set<std::string> names_of_places(const ClusterSpec& cluster, Findings& findings) {
  std::set<std::string> names;
  const int nics = nic_bundles(cluster.node);
  for (int port = 0; port < port_count(cluster); ++port) {
    names.insert("node" + std::to_string(port / nics) + ".nic" + std::to_string(port % nics));
  }
  for (std::size_t i = 0; i < cluster.fabric.switches.size(); ++i) {
    const std::string& name = cluster.fabric.switches[i];
    const bool plain = name.find_first_of("*/>#") == std::string::npos && !name.empty();
    findings.require(
        plain && names.insert(name).second, "fabric.switches[" + std::to_string(i) + "]",
        "switch \"" + name + "\" has the name of another, or none, or one with * / > #",
        "give it a name of its own");
  }
  return names;
}

void check_graph(const ClusterSpec& cluster, Findings& findings) {
  const FabricSpec& fabric = cluster.fabric;
  const std::int64_t ports = port_count(cluster);
  const std::int64_t places = ports + static_cast<std::int64_t>(fabric.switches.size());
  findings.require(ports * places <= kMostDistances, "fabric.switches",
                   std::to_string(ports) + " NICs and " + std::to_string(fabric.switches.size()) +
                       " switches are too many for a fabric of kind graph",
                   "use a regular kind: rail_optimized, clos, dragonfly or torus");
  if (!findings.empty()) return;
  const std::set<std::string> names = names_of_places(cluster, findings);
  for (std::size_t i = 0; i < fabric.links.size(); ++i) {
    const FabricCable& cable = fabric.links[i];
    const std::string where = "fabric.links[" + std::to_string(i) + "]";
    for (const auto& [field, end] : {std::pair{".from", cable.from}, {".to", cable.to}}) {
      findings.require(names.contains(end), where + field,
                       "\"" + end + "\" is neither a switch nor a NIC",
                       "list it in fabric.switches, or name a NIC like node0.nic0 (" +
                           std::to_string(cluster.node_count) + " nodes, " +
                           std::to_string(nic_bundles(cluster.node)) + " NICs or bundles each)");
    }
    findings.require(cable.from != cable.to, where, "\"" + cable.from + "\" is joined to itself",
                     "name two places");
    findings.require_positive(cable.bandwidth.value(), where + ".bandwidth");
  }
}

}  // namespace

void check_fabric(const ClusterSpec& cluster, Findings& findings) {
  const FabricKind kind = cluster.fabric.kind;
  if (kind == FabricKind::plain_switch) return;
  findings.require_at_least(cluster.node.nic_count, 1, "node.nic_count");
  if (!findings.empty()) return;
  if (kind == FabricKind::rail_optimized || kind == FabricKind::clos) check_clos(cluster, findings);
  if (kind == FabricKind::dragonfly) check_dragonfly(cluster, findings);
  if (kind == FabricKind::torus) check_torus(cluster, findings);
  if (kind == FabricKind::graph) check_graph(cluster, findings);
}

}  // namespace tessera
