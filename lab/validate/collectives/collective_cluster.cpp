#include "lab/validate/collectives/collective_cluster.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

#include "hw/link_rates.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

constexpr BytesPerSecond kSocketBandwidth = 16_GBps;  // topo.h: AMD

bool has(const std::string& text, const std::string& word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

[[noreturn]] void complain(const CollectiveRun& run, const std::string& column,
                           const std::string& value, const std::string& hint) {
  throw InputError({.where = run.where, .what = column + ": \"" + value + "\"", .hint = hint});
}

/// GPUs of the smallest shipped node that joins this GPU over switches (DGX-2 joins 16 of its
/// module, a rack 72); 8 where none is shipped.
int gpus_of_shipped_board(const std::string& gpu, const Catalog& catalog) {
  std::optional<int> found;
  for (const std::string& id : catalog.ids(CatalogKind::nodes)) {
    const NodeSpec node = load_node(id, catalog);
    if (node.gpu.id != gpu || node.interconnect != GpuInterconnect::nvswitch) continue;
    found = std::min(found.value_or(node.gpu_count), node.gpu_count);
  }
  return found.value_or(8);
}

/// What a library reaches of the links' line rate, as the shipped node with this GPU says; all of
/// it where none is shipped.
double share_of_shipped_node(const std::string& gpu, const Catalog& catalog) {
  for (const std::string& id : catalog.ids(CatalogKind::nodes)) {
    const NodeSpec node = load_node(id, catalog);
    if (node.gpu.id == gpu && node.interconnect != GpuInterconnect::none)
      return node.nvlink_efficiency;
  }
  return 1;
}

int gpus_of_node(const CollectiveRun& run, const Catalog& catalog, const std::string& gpu,
                 bool over_switch) {
  const int taking_part = run.ranks / run.nodes;
  const bool mesh_of_four = has(run.intra_link, "mesh") || has(run.intra_link, "4-GPU");
  if (!over_switch) return mesh_of_four ? std::max(4, taking_part) : taking_part;
  if (has(run.intra_link, "NVL72")) return std::max(72, taking_part);
  return std::max(gpus_of_shipped_board(gpu, catalog), taking_part);
}

void add_pairs(const CollectiveRun& run, const Catalog& catalog, NodeSpec& node) {
  node.interconnect = GpuInterconnect::direct;
  if (has(run.intra_link, "cube")) {
    node.pairs = load_node("DGX-1-V100", catalog).pairs;
    node.gpu_count = 8;
    return;
  }
  const bool pairwise = has(run.intra_link, "pairwise") || has(run.intra_link, "bridge");
  // The three bridges of a PCIe card carry what its data sheet says of NVLink.
  const int links = std::max(1, node.gpu.nvlink_links);
  for (int a = 0; a < node.gpu_count; ++a) {
    for (int b = a + 1; b < node.gpu_count; ++b) {
      if (pairwise && (a / 2 != b / 2)) continue;
      const int bundle = pairwise ? links : std::max(1, links / (node.gpu_count - 1));
      node.pairs.push_back({a, b, bundle});
    }
  }
}

void add_interconnect(const CollectiveRun& run, const Catalog& catalog, NodeSpec& node) {
  const bool soldered =
      node.gpu.form_factor == FormFactor::sxm || node.gpu.form_factor == FormFactor::superchip;
  const bool names_switch = has(run.intra_link, "NVSwitch") || has(run.intra_link, "NVLS");
  const bool over_switch = names_switch || (run.intra_link.empty() && soldered);
  node.gpu_count = gpus_of_node(run, catalog, node.gpu.id, over_switch);
  if (over_switch) {
    node.interconnect = GpuInterconnect::nvswitch;
  } else if (has(run.intra_link, "mesh") || has(run.intra_link, "pairwise") ||
             has(run.intra_link, "bridge") || has(run.intra_link, "4-GPU")) {
    add_pairs(run, catalog, node);
  } else if (!run.intra_link.empty() && !has(run.intra_link, "PCIe") &&
             !has(run.intra_link, "none")) {
    complain(run, "intra_link", run.intra_link,
             "name NVSwitch, a mesh, pairwise NVLink or PCIe in it");
  }
  const bool nvlink = node.interconnect != GpuInterconnect::none;
  if (!nvlink) return;
  if (node.gpu.nvlink_links < 1) complain(run, "gpu", run.gpu, "this GPU has no NVLink");
  node.nvlink_bandwidth_per_link = node.gpu.nvlink_bandwidth / node.gpu.nvlink_links;
  const int generation = node.gpu.nvlink_generation;  // 0: another vendor's links
  node.nvlink_efficiency =
      generation == 0 ? share_of_shipped_node(node.gpu.id, catalog) : nccl_nvlink_share(generation);
  node.nvlink_latency = kNvlinkHop;
}

/// p5en joins H200; later instances join Blackwell.
Seconds efa_hop(const GpuSpec& gpu) {
  const bool before = gpu.architecture <= Architecture::hopper && !has(gpu.id, "H200");
  return before ? kEfaHop : kNewEfaHop;
}

void add_nics(const CollectiveRun& run, NodeSpec& node) {
  if (run.nodes < 2) return;
  static const std::regex kNics(R"((\d{1,3})\s*[xX]\s*(\d{1,5})\s*G)");
  constexpr std::size_t kLongest = 200;  // std::regex recurses over its text
  const std::string text = run.inter_link.substr(0, kLongest);
  std::smatch found;
  if (!std::regex_search(text, found, kNics))
    complain(run, "inter_link", run.inter_link, "write the NICs of a node as 8x400G InfiniBand");
  node.nic_count = std::clamp(std::stoi(found[1]), 1, node.gpu_count);
  // More NICs than GPUs work in groups.
  const double together = std::stod(found[1]) / node.nic_count;
  node.nic_bandwidth = BytesPerSecond(std::stod(found[2]) * together * 1e9 / 8);
  node.nic_efficiency = kNicShare;
  node.nic_latency = has(run.inter_link, "EFA")    ? efa_hop(node.gpu)
                     : has(run.inter_link, "RoCE") ? kRoceHop
                                                   : kInfinibandHop;
}

}  // namespace

ClusterSpec cluster_of_run(const CollectiveRun& run, const Catalog& catalog) {
  if (run.ranks % run.nodes != 0)
    complain(run, "n_gpus", std::to_string(run.ranks), "nodes take part with equal numbers");
  NodeSpec node;
  node.gpu = load_gpu(run.gpu, catalog);
  node.id = "node of " + run.gpu;
  add_interconnect(run, catalog, node);
  node.pcie_efficiency = kNcclPcieShare;
  node.pcie_latency = 0.5_us;
  node.sockets = has(run.intra_link, "two sockets") && node.gpu_count % 2 == 0 ? 2 : 1;
  node.socket_bandwidth = kSocketBandwidth;
  node.host_memory = 512_GiB;
  add_nics(run, node);
  ClusterSpec cluster;
  cluster.id = run.system;
  cluster.node = node;
  cluster.node_count = run.nodes;
  cluster.fabric_latency = 0.6_us;
  return cluster;
}

const Topology& RunTopologies::of(const CollectiveRun& run) {
  const std::string key = run.gpu + '\n' + std::to_string(run.ranks) + '\n' +
                          std::to_string(run.nodes) + '\n' + run.intra_link + '\n' + run.inter_link;
  auto found = topologies_.find(key);
  if (found == topologies_.end())
    found = topologies_.emplace(key, Topology(cluster_of_run(run, catalog_))).first;
  return found->second;
}

std::vector<int> ranks_of_run(const CollectiveRun& run, const ClusterSpec& cluster) {
  std::vector<int> ranks;
  for (int node = 0; node < run.nodes; ++node) {
    for (int gpu = 0; gpu < run.ranks / run.nodes; ++gpu)
      ranks.push_back(node * cluster.node.gpu_count + gpu);
  }
  return ranks;
}

}  // namespace tessera
