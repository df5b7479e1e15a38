#include "hw/link_notes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hw/link_rates.h"
#include "hw/node_links.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr double kRounding = 1e-3;  // relative

/// The description of a node says how fast one link between its GPUs is; a GPU that was made for
/// another node brings their number, and may have links of another kind.
std::optional<std::string> note_on_gpu_links(const NodeSpec& node) {
  const GpuSpec& gpu = node.gpu;
  if (node.interconnect == GpuInterconnect::none || gpu.nvlink_links == 0) return std::nullopt;
  const BytesPerSecond own = gpu.nvlink_bandwidth / gpu.nvlink_links;
  const BytesPerSecond nodes = node.nvlink_bandwidth_per_link;
  if (std::abs(own / nodes - 1) <= kRounding) return std::nullopt;
  const bool switched = node.interconnect == GpuInterconnect::nvswitch;
  return gpu.id + " has " + std::to_string(gpu.nvlink_links) + " links of " + to_text(own) +
         (gpu.vendor == "NVIDIA" ? " (NVLink)" : " of " + gpu.vendor) + "; node " + node.id +
         " was described with links of " + to_text(nodes) + ": its GPUs are simulated on " +
         (switched ? "a switch with " + std::to_string(gpu.nvlink_links) + " such links each"
                   : std::string("pairs of such links"));
}

/// Between a GPU and its NIC lies the GPU's own slot, and what several GPUs share.
std::optional<std::string> note_on_nics(const ClusterSpec& cluster) {
  if (cluster.node_count == 1 || cluster.node.nic_count == 0) return std::nullopt;
  const NodeLinks links(cluster.node, cluster.fabric_latency);
  const BytesPerSecond nic = nic_bundle_rate(cluster.node);
  const Link* narrowest = nullptr;
  for (const int index : links.gpu_to_fabric(0)) {
    const Link& link = links.links()[static_cast<std::size_t>(index)];
    if (link.technology == LinkTechnology::nic) continue;
    if (narrowest == nullptr || link.bandwidth < narrowest->bandwidth) narrowest = &link;
  }
  if (narrowest == nullptr || narrowest->bandwidth / nic >= 1 - kRounding) return std::nullopt;
  return "a GPU's NICs carry " + to_text(nic) + ", the way to them (" + narrowest->name + ") " +
         to_text(narrowest->bandwidth) + ": faster NICs change nothing before that link does";
}

/// Copies through the host's memory are several times slower than PCIe between two cards, which
/// few people expect.
std::optional<std::string> note_on_staging(const NodeSpec& node) {
  if (node.staged_bandwidth.value() == 0 || node.gpu_count == 1) return std::nullopt;
  if (node.interconnect == GpuInterconnect::nvswitch) return std::nullopt;
  return "GPUs of " + node.id +
         " cannot read each other's memory: copies between them go through " + "the host's at " +
         to_text(node.staged_bandwidth) + ", of " +
         to_text(node.gpu.pcie_bandwidth * node.pcie_efficiency) +
         " over PCIe (set staged_bandwidth: 0 GB/s where they can)";
}

/// A described node whose cards have no peer-to-peer, and which says nothing of it.
std::optional<std::string> note_on_missing_peers(const NodeSpec& node) {
  const bool staged = node.staged_bandwidth.value() > 0;
  const auto all_pairs = static_cast<std::size_t>(node.gpu_count * (node.gpu_count - 1) / 2);
  const bool joined =
      node.interconnect == GpuInterconnect::nvswitch || node.pairs.size() == all_pairs;
  if (node.gpu.peer_to_peer || staged || joined) return std::nullopt;
  return node.gpu.id + " has no peer-to-peer over PCIe, which node " + node.id +
         " is simulated with: set staged_bandwidth, " + to_text(kStagedCopy) +
         " where you measured nothing";
}

}  // namespace

std::vector<std::string> notes_on_links(const ClusterSpec& cluster) {
  std::vector<std::string> notes;
  for (const auto& note : {note_on_gpu_links(cluster.node), note_on_nics(cluster),
                           note_on_staging(cluster.node), note_on_missing_peers(cluster.node)})
    if (note) notes.push_back(*note);
  return notes;
}

}  // namespace tessera
