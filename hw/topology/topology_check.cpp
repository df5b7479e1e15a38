#include "hw/topology/topology_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr std::size_t kMostNamed = 8;  // of one kind of doubt; the rest is counted

bool differ(double a, double b) {
  constexpr double kRounding = 1e-6;  // relative
  return std::abs(a - b) > kRounding * std::max(std::abs(a), std::abs(b));
}

/// Keeps the first few problems and counts the others.
class Doubts {
 public:
  void add(Problem problem) {
    if (++count_ <= kMostNamed) problems_.push_back(std::move(problem));
  }
  void move_to(std::vector<Problem>& all, const std::string& kind) {
    if (count_ > kMostNamed) {
      problems_.push_back({"", std::to_string(count_ - kMostNamed) + " more " + kind, ""});
    }
    for (Problem& problem : problems_) all.push_back(std::move(problem));
  }

 private:
  std::vector<Problem> problems_;
  std::size_t count_ = 0;
};

void add_uneven_cables(const Topology& topology, std::vector<Problem>& all) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  const auto links = topology.links();
  for (std::size_t i = 0; i < links.size(); ++i) by_name[links[i].name] = i;
  Doubts doubts;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkId id(static_cast<std::int32_t>(i));
    if (links[i].technology == LinkTechnology::nvme || topology.is_missing(id)) continue;
    const auto back = by_name.find(reversed_link_name(links[i].name));
    if (back == by_name.end()) continue;  // described as one_way
    if (topology.is_missing(LinkId(static_cast<std::int32_t>(back->second)))) {
      doubts.add({links[i].name, "has no way back (faults)", ""});
    } else if (i < back->second &&
               differ(links[i].bandwidth.value(), links[back->second].bandwidth.value())) {
      doubts.add({links[i].name,
                  to_text(links[i].bandwidth) + " there, but " +
                      to_text(links[back->second].bandwidth) + " back",
                  "give both directions one bandwidth, if this is a cable"});
    }
  }
  doubts.move_to(all, "asymmetric links");
}

/// Links that differ from those of the same name in other nodes.
void add_uneven_nodes(const Topology& topology, std::vector<Problem>& all) {
  Doubts doubts;
  const int per_node = static_cast<int>(topology.node_links(0).links().size());
  for (int node = 0; node < topology.cluster().node_count; ++node) {
    for (int index = 0; index < per_node; ++index) {
      const LinkId id = topology.link_of_node(node, index);
      const Link& link = topology.link(id);
      const Link& described = topology.node_links(node).links()[static_cast<std::size_t>(index)];
      if (topology.is_missing(id)) doubts.add({link.name, "is missing (faults)", ""});
      if (differ(link.bandwidth.value(), described.bandwidth.value())) {
        doubts.add({link.name,
                    "runs at " + to_text(link.bandwidth) + " of " + to_text(described.bandwidth) +
                        " (faults)",
                    ""});
      }
    }
  }
  doubts.move_to(all, "degraded or missing links");
}

void add_nvlink_doubts(const NodeSpec& node, std::vector<Problem>& all) {
  if (node.interconnect == GpuInterconnect::none) return;
  const BytesPerSecond own = node.gpu.nvlink_bandwidth / node.gpu.nvlink_links;
  if (differ(node.nvlink_bandwidth_per_link.value(), own.value())) {
    all.push_back({"node.nvlink_bandwidth_per_link",
                   to_text(node.nvlink_bandwidth_per_link) + ", but an NVLink of " + node.gpu.id +
                       " has " + to_text(own),
                   "use the GPU's, and nvlink_efficiency for what NCCL reaches"});
  }
  if (node.interconnect != GpuInterconnect::direct) return;
  for (int gpu = 0; gpu < node.gpu_count; ++gpu) {
    int used = 0;
    for (const GpuPairLink& pair : node.pairs) {
      if (pair.first == gpu || pair.second == gpu) used += pair.links;
    }
    // Some links of MI250X lead to the host and to a NIC.
    const bool others_lead_elsewhere = node.gpu.vendor == "AMD" && used < node.gpu.nvlink_links;
    if (used == node.gpu.nvlink_links || others_lead_elsewhere) continue;
    all.push_back({"node.pairs",
                   "GPU " + std::to_string(gpu) + " uses " + std::to_string(used) + " of its " +
                       std::to_string(node.gpu.nvlink_links) + " NVLinks",
                   "list the others, or use interconnect nvswitch"});
  }
}

void add_narrow_pcie(const NodeSpec& node, std::vector<Problem>& all) {
  const bool coherent = node.gpu.c2c_bandwidth.value() > 0;
  const BytesPerSecond slot =
      (coherent ? node.gpu.c2c_bandwidth : node.gpu.pcie_bandwidth) * node.pcie_efficiency;
  if (nic_bundles(node) == 0 || nic_bundle_rate(node) <= slot) return;
  all.push_back({"node.nic_bandwidth",
                 to_text(nic_bundle_rate(node)) +
                     " of NICs per GPU or group, but its way to them " + "carries " + to_text(slot),
                 "the PCIe link of the GPU is the bottleneck: check pcie_efficiency and the NICs"});
}

/// Compares one figure.
class Comparison {
 public:
  Comparison(std::string id, std::vector<Problem>& all) : id_(std::move(id)), all_(all) {}

  template <class Rate>
  void operator()(const std::string& field, Rate here, Rate there) {
    if (!differ(static_cast<double>(here.value()), static_cast<double>(there.value()))) return;
    all_.push_back({field, to_text(here) + ", but " + to_text(there) + " in the catalog's " + id_,
                    "correct it, or give the description an id of its own"});
  }

 private:
  std::string id_;
  std::vector<Problem>& all_;
};

}  // namespace

std::vector<Problem> doubts_about(const Topology& topology) {
  std::vector<Problem> all;
  add_uneven_cables(topology, all);
  add_uneven_nodes(topology, all);
  add_nvlink_doubts(topology.cluster().node, all);
  add_narrow_pcie(topology.cluster().node, all);
  return all;
}

std::vector<Problem> differences_from_catalog(const GpuSpec& gpu, const GpuSpec& catalog) {
  std::vector<Problem> all;
  Comparison compare(catalog.id, all);
  compare("gpu.nvlink_bandwidth", gpu.nvlink_bandwidth, catalog.nvlink_bandwidth);
  compare("gpu.pcie_bandwidth", gpu.pcie_bandwidth, catalog.pcie_bandwidth);
  compare("gpu.c2c_bandwidth", gpu.c2c_bandwidth, catalog.c2c_bandwidth);
  compare("gpu.memory_bandwidth", gpu.memory_bandwidth, catalog.memory_bandwidth);
  return all;
}

std::vector<Problem> differences_from_catalog(const NodeSpec& node, const NodeSpec& catalog) {
  std::vector<Problem> all;
  Comparison compare(catalog.id, all);
  compare("node.nvlink_bandwidth_per_link", node.nvlink_bandwidth_per_link,
          catalog.nvlink_bandwidth_per_link);
  compare("node.socket_bandwidth", node.socket_bandwidth, catalog.socket_bandwidth);
  compare("node.nic_bandwidth", node.nic_bandwidth, catalog.nic_bandwidth);
  compare("node.host_memory_bandwidth", node.host_memory_bandwidth, catalog.host_memory_bandwidth);
  compare("node.nvme_read_bandwidth", node.nvme_read_bandwidth, catalog.nvme_read_bandwidth);
  compare("node.nvme_write_bandwidth", node.nvme_write_bandwidth, catalog.nvme_write_bandwidth);
  return all;
}

}  // namespace tessera
