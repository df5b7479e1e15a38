#include "hw/topology/wiring.h"

#include <string>
#include <utility>

#include "hw/findings.h"

namespace tessera {
namespace {

std::vector<Link> links_of(const ClusterSpec& cluster, const NodeLinks& node,
                           const Fabric& fabric) {
  std::vector<Link> links;
  links.reserve(static_cast<std::size_t>(cluster.node_count) * node.links().size() +
                fabric.graph().links().size());
  for (int i = 0; i < cluster.node_count; ++i) {
    const std::string prefix = "node" + std::to_string(i) + "/";
    for (const Link& link : node.links()) {
      links.push_back(link);
      links.back().name.insert(0, prefix);
    }
  }
  links.insert(links.end(), fabric.graph().links().begin(), fabric.graph().links().end());
  return links;
}

/// Lowers bandwidths and marks missing links.
void apply(const LinkFault& fault, const std::string& where, Wiring& wiring, Findings& findings) {
  bool found = false;
  for (std::size_t i = 0; i < wiring.links.size(); ++i) {
    Link& link = wiring.links[i];
    const bool hit = matches(fault.link, link.name) ||
                     (!fault.one_way && matches(fault.link, reversed_link_name(link.name)));
    if (!hit) continue;
    found = true;
    if (fault.bandwidth_share > 0) {
      link.bandwidth = link.bandwidth * fault.bandwidth_share;
    } else {
      wiring.missing.resize(wiring.links.size());
      wiring.missing[i] = true;
    }
  }
  findings.require(
      found, where + ".link", where + ".link = \"" + fault.link + "\" names no link of the cluster",
      "links have names such as " + wiring.links.front().name + " and " + wiring.links.back().name);
}

void take_out_node_links(Wiring& wiring, const ClusterSpec& cluster, Findings& findings) {
  const int per_node = static_cast<int>(wiring.node.links().size());
  for (int node = 0; node < cluster.node_count; ++node) {
    std::vector<int> missing;
    for (int link = 0; link < per_node; ++link) {
      if (wiring.missing[static_cast<std::size_t>(node * per_node + link)]) missing.push_back(link);
    }
    if (missing.empty()) continue;
    const NodeLinks rest = wiring.node.without(missing);
    for (const int gpu : rest.cut_off_gpus()) {
      findings.require(false, "faults",
                       "node " + std::to_string(node) + ": GPU " + std::to_string(gpu) +
                           " cannot reach the other GPUs, the host, the drives or a NIC any more",
                       "leave a link in");
    }
    wiring.damaged.emplace(node, rest);
  }
}

void take_out_fabric_links(const Wiring& wiring, Fabric& fabric) {
  const std::size_t count = fabric.graph().links().size();
  const std::size_t first = wiring.links.size() - count;
  for (std::size_t link = 0; link < count; ++link) {
    if (wiring.missing[first + link]) fabric.remove(static_cast<int>(link));
  }
}

void check_fabric_is_whole(const ClusterSpec& cluster, const Fabric& fabric, Findings& findings) {
  const int nics = nic_bundles(cluster.node);
  const std::vector<int> cut_off = fabric.cut_off_ports(cluster.node_count * nics);
  if (cut_off.empty()) return;
  const int port = cut_off.front();
  findings.require(false, "fabric",
                   std::to_string(cut_off.size()) +
                       " NICs cannot be reached from node 0 NIC 0 and "
                       "back; the first is NIC " +
                       std::to_string(port % nics) + " of node " + std::to_string(port / nics),
                   "add links, or leave them in");
}

}  // namespace

Wiring wire(const ClusterSpec& cluster, std::vector<Problem>& problems) {
  std::unique_ptr<Fabric> fabric = make_fabric(cluster);
  Wiring wiring{NodeLinks(cluster.node, cluster.fabric_latency), {}, nullptr, {}, {}};
  wiring.links = links_of(cluster, wiring.node, *fabric);
  Findings findings;
  for (std::size_t i = 0; i < cluster.faults.size(); ++i) {
    apply(cluster.faults[i], "faults[" + std::to_string(i) + "]", wiring, findings);
  }
  if (!wiring.missing.empty()) {
    take_out_node_links(wiring, cluster, findings);
    take_out_fabric_links(wiring, *fabric);
  }
  if (fabric->graph().any_missing() || cluster.fabric.kind == FabricKind::graph) {
    check_fabric_is_whole(cluster, *fabric, findings);
  }
  fabric->settle();
  wiring.fabric = std::move(fabric);
  if (cluster.storage_bandwidth.value() > 0) {
    wiring.links.push_back({.name = "storage",
                            .technology = LinkTechnology::fabric,
                            .bandwidth = cluster.storage_bandwidth,
                            .latency = {}});
    if (!wiring.missing.empty()) wiring.missing.push_back(false);
  }
  for (Problem& problem : findings.take()) problems.push_back(std::move(problem));
  return wiring;
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  std::size_t p = 0;
  std::size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string reversed_link_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  const std::size_t arrow = name.find("->");
  const std::size_t end = std::min(name.find('#'), name.size());
  if (slash == std::string::npos || arrow == std::string::npos) return name;
  return name.substr(0, slash + 1) + name.substr(arrow + 2, end - arrow - 2) + "->" +
         name.substr(slash + 1, arrow - slash - 1) + name.substr(end);
}

}  // namespace tessera
