#include "hw/validation.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "hw/fabric/fabric_measurements.h"
#include "hw/fabric/fabric_rules.h"
#include "hw/findings.h"
#include "hw/power.h"
#include "hw/topology/wiring.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

/// Above this, a full mesh needs more NVLinks than any GPU has; such nodes carry switches.
constexpr int kMaxDirectGpus = 8;

/// Keep a mistyped number from costing all memory.
constexpr int kMaxSockets = 1024;
constexpr std::int64_t kMaxGpus = 524'288;

void check_pair(const NodeSpec& node, std::size_t index, Findings& findings) {
  const GpuPairLink& pair = node.pairs[index];
  const std::string where = "pairs[" + std::to_string(index) + "]";
  const auto is_gpu = [&](int gpu) { return gpu >= 0 && gpu < node.gpu_count; };
  const std::string named =
      "pair " + std::to_string(pair.first) + "-" + std::to_string(pair.second);
  findings.require(is_gpu(pair.first) && is_gpu(pair.second), where,
                   named + " names a GPU that the node lacks",
                   "GPUs are numbered 0 to " + std::to_string(node.gpu_count - 1));
  findings.require(pair.first != pair.second, where, named + " joins a GPU to itself",
                   "name two GPUs");
  findings.require_at_least(pair.links, 1, where + ".links");
}

void check_repeated_pairs(const NodeSpec& node, Findings& findings) {
  std::set<std::pair<int, int>> seen;
  for (std::size_t i = 0; i < node.pairs.size(); ++i) {
    const auto [low, high] = std::minmax(node.pairs[i].first, node.pairs[i].second);
    findings.require(seen.insert({low, high}).second, "pairs[" + std::to_string(i) + "]",
                     "pair " + std::to_string(low) + "-" + std::to_string(high) + " is repeated",
                     "sum the links into one entry");
  }
}

void check_link_budget(const NodeSpec& node, Findings& findings) {
  for (int gpu = 0; gpu < node.gpu_count; ++gpu) {
    int used = 0;
    for (const GpuPairLink& pair : node.pairs) {
      if (pair.first == gpu || pair.second == gpu) used += pair.links;
    }
    findings.require(used <= node.gpu.nvlink_links, "pairs",
                     "GPU " + std::to_string(gpu) + " has " + std::to_string(used) +
                         " NVLinks in pairs, but " + node.gpu.id + " has " +
                         std::to_string(node.gpu.nvlink_links),
                     "remove links or choose another GPU");
  }
}

void check_direct(const NodeSpec& node, Findings& findings) {
  findings.require(!node.pairs.empty(), "pairs", "interconnect direct without pairs",
                   "list the NVLink bundles, or use interconnect none");
  findings.require(node.gpu_count <= kMaxDirectGpus, "gpu_count",
                   "interconnect direct with " + std::to_string(node.gpu_count) + " GPUs",
                   "use up to " + std::to_string(kMaxDirectGpus) + ", or interconnect nvswitch");
  for (std::size_t i = 0; i < node.pairs.size(); ++i) check_pair(node, i, findings);
  check_repeated_pairs(node, findings);
  check_link_budget(node, findings);
}

void check_nvlink(const NodeSpec& node, Findings& findings) {
  if (node.interconnect != GpuInterconnect::direct) {
    findings.require(node.pairs.empty(), "pairs", "pairs without interconnect direct",
                     "remove pairs, or use interconnect direct");
  }
  if (node.interconnect == GpuInterconnect::none) return;
  findings.require_positive(node.nvlink_bandwidth_per_link.value(), "nvlink_bandwidth_per_link");
  findings.require_share(node.nvlink_efficiency, "nvlink_efficiency");
  findings.require_at_least(node.gpu.nvlink_links, 1, "gpu.nvlink_links");
  if (node.interconnect == GpuInterconnect::direct) check_direct(node, findings);
}

void check_host_links(const NodeSpec& node, Findings& findings) {
  findings.require_at_least(node.gpus_per_pcie_switch, 1, "gpus_per_pcie_switch");
  findings.require_at_least(node.sockets, 1, "sockets");
  findings.require(node.sockets <= kMaxSockets, "sockets",
                   "sockets = " + std::to_string(node.sockets),
                   "use up to " + std::to_string(kMaxSockets));
  findings.require_share(node.pcie_efficiency, "pcie_efficiency");
  findings.require_positive(node.gpu.pcie_bandwidth.value(), "gpu.pcie_bandwidth");
  // NVSwitch and a NIC per GPU leave nothing to cross between the sockets.
  const bool meets_elsewhere = node.interconnect == GpuInterconnect::nvswitch &&
                               (node.nic_count == 0 || node.nic_count >= node.gpu_count);
  if (node.sockets > 1 && !meets_elsewhere) {
    findings.require_positive(node.socket_bandwidth.value(), "socket_bandwidth");
  }
}

void check_nvme(const NodeSpec& node, Findings& findings) {
  findings.require_at_least(node.nvme_count, 0, "nvme_count");
  if (node.nvme_count <= 0) return;
  findings.require_positive(node.nvme_read_bandwidth.value(), "nvme_read_bandwidth");
  findings.require_positive(node.nvme_write_bandwidth.value(), "nvme_write_bandwidth");
  const bool beside_every_gpu =
      node.sockets == 1 || node.socket_bandwidth.value() > 0 || node.nvme_count >= node.sockets;
  findings.require(beside_every_gpu, "nvme_count",
                   std::to_string(node.nvme_count) + " drives for " + std::to_string(node.sockets) +
                       " sockets that nothing joins",
                   "give a drive to every socket, or socket_bandwidth");
}

void check_nics(const NodeSpec& node, Findings& findings) {
  findings.require_at_least(node.nic_count, 0, "nic_count");
  if (node.nic_count <= 0) return;
  findings.require(
      node.nic_count <= node.gpu_count || node.nic_count % std::max(node.gpu_count, 1) == 0,
      "nic_count",
      std::to_string(node.nic_count) + " NICs for " + std::to_string(node.gpu_count) + " GPUs",
      "use at most as many NICs as GPUs, or a multiple");
  findings.require_positive(node.nic_bandwidth.value(), "nic_bandwidth");
  findings.require_share(node.nic_efficiency, "nic_efficiency");
}

void check_power(const GpuSpec& gpu, Findings& findings) {
  const Watts limit = gpu.power_limit;
  if (limit.value() <= 0) return;
  findings.require(gpu.tdp.value() > 0, "power_limit",
                   to_text(limit) + " of a GPU whose board power is not known", "give its tdp");
  if (gpu.tdp.value() <= 0) return;
  findings.require(limit <= gpu.tdp, "power_limit",
                   to_text(limit) + " is above the board power of " + to_text(gpu.tdp),
                   "give less, or leave it out");
  findings.require(limit > idle_power(gpu) * 1.5, "power_limit",
                   to_text(limit) + " leaves nothing to compute with: idle, the board draws " +
                       to_text(idle_power(gpu)),
                   "give more");
}

}  // namespace

std::vector<Problem> problems_of(const GpuSpec& gpu) {
  Findings findings;
  findings.require(!gpu.id.empty(), "id", "the GPU has no id", "name it");
  findings.require_at_least(gpu.sm_count, 1, "sm_count");
  findings.require_positive(gpu.boost_clock.value(), "boost_clock");
  findings.require_positive(gpu.fp32.value(), "fp32");
  findings.require_positive(static_cast<double>(gpu.memory.value()), "memory");
  findings.require_positive(gpu.memory_bandwidth.value(), "memory_bandwidth");
  check_power(gpu, findings);
  findings.require((gpu.nvlink_links > 0) == (gpu.nvlink_bandwidth.value() > 0), "nvlink_bandwidth",
                   std::to_string(gpu.nvlink_links) + " NVLinks with " +
                       to_text(gpu.nvlink_bandwidth) + " together",
                   "give both nvlink_links and nvlink_bandwidth, or neither");
  return findings.take();
}

std::vector<Problem> problems_of(const NodeSpec& node) {
  Findings findings;
  findings.add_below("gpu", problems_of(node.gpu));
  findings.require_at_least(node.gpu_count, 1, "gpu_count");
  check_nvlink(node, findings);
  check_host_links(node, findings);
  check_nics(node, findings);
  check_nvme(node, findings);
  return findings.take();
}

std::vector<Problem> problems_of(const ClusterSpec& cluster) {
  Findings findings;
  findings.add_below("node", problems_of(cluster.node));
  findings.require_at_least(cluster.node_count, 1, "node_count");
  const std::int64_t gpus = std::int64_t{cluster.node_count} * cluster.node.gpu_count;
  findings.require(
      gpus <= kMaxGpus, "node_count",
      std::to_string(cluster.node_count) + " nodes have " + std::to_string(gpus) + " GPUs",
      "use up to " + std::to_string(kMaxGpus) + " GPUs");
  findings.require(cluster.node_count <= 1 || cluster.node.nic_count > 0, "node.nic_count",
                   std::to_string(cluster.node_count) + " nodes without a NIC",
                   "give nic_count and nic_bandwidth, or use one node");
  check_measured_fabric(cluster, findings);
  if (findings.empty()) check_fabric(cluster, findings);
  const bool has_own_wiring = !cluster.faults.empty() || cluster.fabric.kind == FabricKind::graph;
  if (findings.empty() && has_own_wiring) {
    std::vector<Problem> problems;
    wire(cluster, problems);
    return problems;
  }
  return findings.take();
}

}  // namespace tessera
