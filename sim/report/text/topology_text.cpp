#include "sim/report/text/topology_text.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "hw/promised_rate.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr int kLargestMatrix = 16;  // GPUs

std::string left_aligned(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string figure_line(const std::string& name, const std::string& value,
                        const std::string& meaning) {
  return left_aligned(name, 22) + left_aligned(value, 14) + meaning + "\n";
}

std::string ratio(double value) {
  return formatted("%.2f", value);
}

std::string name_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::plain_switch:
      return "one non-blocking switch";
    case FabricKind::rail_optimized:
      return "rail-optimized fat tree";
    case FabricKind::clos:
      return "fat tree";
    case FabricKind::dragonfly:
      return "dragonfly";
    case FabricKind::torus:
      return "torus";
    case FabricKind::graph:
      return "listed graph";
  }
  return "";
}

std::string topology_head(const Topology& topology) {
  const ClusterSpec& cluster = topology.cluster();
  const NodeSpec& node = cluster.node;
  std::string text = cluster.id + ": " + std::to_string(cluster.node_count) + " x " + node.id +
                     ", " + std::to_string(topology.gpu_count()) + " x " + node.gpu.id + "\n";
  const SwitchGraph& fabric = topology.fabric().graph();
  if (cluster.node_count > 1 || cluster.fabric.kind != FabricKind::plain_switch) {
    text += "fabric: " + name_of(cluster.fabric.kind) + ", " +
            std::to_string(fabric.places().size()) + " places, " +
            std::to_string(fabric.links().size()) + " links between them\n";
  }
  return text;
}

std::string figure_lines(const Topology& topology, const TopologyMetrics& metrics) {
  std::string text;
  const auto rate = [](BytesPerSecond value) { return to_short_text(value); };
  if (metrics.nvlink_per_gpu.value() > 0) {
    text += figure_line("NVLink per GPU", rate(metrics.nvlink_per_gpu),
                        "out of GPU 0, all its NVLinks");
  }
  if (metrics.network_per_gpu.value() > 0) {
    text += figure_line("network per GPU", rate(metrics.network_per_gpu),
                        "its part of the node's NICs");
  }
  text +=
      figure_line("host copy per GPU", rate(metrics.host_per_gpu), "GPU 0 to host memory, alone");
  if (metrics.nvme_per_gpu.value() > 0) {
    text += figure_line("drives per GPU", rate(metrics.nvme_per_gpu), "drives to GPU 0, alone");
  }
  if (topology.gpu_count() < 2) return text;
  text += figure_line("bisection bandwidth", rate(metrics.bisection),
                      "from the lower half of the GPUs to the upper");
  if (topology.cluster().node_count > 1) {
    text += figure_line("oversubscription", ratio(metrics.oversubscription),
                        "network of that half over it; 1: no blocking");
  }
  text += figure_line("shift by half", rate(metrics.shift_rate),
                      "slowest GPU where all send half way across");
  text += figure_line("diameter", std::to_string(metrics.diameter) + " links",
                      to_short_text(metrics.diameter_latency) + " at most; " +
                          (metrics.all_pairs ? "all " : "a sample of ") +
                          std::to_string(metrics.pairs) + " pairs");
  return text;
}

/// What joins two GPUs of a node, in the words of `nvidia-smi topo -m`; NVS: an NVSwitch, NVB: a
/// neighbour's NVLinks.
std::string way_between(const Topology& topology, int from, int to) {
  if (from == to) return "X";
  const LinkId bundle = topology.nvlink_bundle(from, to);
  if (bundle.valid()) return "NV" + std::to_string(topology.link(bundle).lanes);
  const Route route = topology.route(from, to);
  const auto has = [&](const char* begin, const char* end) {
    return std::ranges::any_of(route.links, [&](LinkId id) {
      const std::string& name = topology.link(id).name;
      const std::string inside = name.substr(name.find('/') + 1);
      return inside.starts_with(begin) && inside.find(end) != std::string::npos;
    });
  };
  const NodeSpec& node = topology.cluster().node;
  if (has("gpu", "->nvswitch")) return "NVS";
  if (has("gpu", "->gpu")) return "NVB";
  if (has("socket", "->socket")) return "SYS";
  if (node.gpus_per_pcie_switch == 1) return "PHB";
  return has("pcie_switch", "->socket") ? "NODE" : "PIX";
}

std::string matrix(const Topology& topology) {
  const int gpus = topology.cluster().node.gpu_count;
  if (gpus < 2 || gpus > kLargestMatrix) return "";
  std::string text = "\nGPUs of node 0:\n" + std::string(6, ' ');
  for (int to = 0; to < gpus; ++to) text += right_aligned("GPU" + std::to_string(to), 6);
  text += "\n";
  for (int from = 0; from < gpus; ++from) {
    text += left_aligned("GPU" + std::to_string(from), 6);
    for (int to = 0; to < gpus; ++to) text += right_aligned(way_between(topology, from, to), 6);
    text += "\n";
  }
  return text;
}

std::string link_figures(const Link& link, const ClusterSpec& cluster) {
  return right_aligned(to_short_text(promised_rate(link, cluster)), 11) +
         right_aligned(to_short_text(link.bandwidth), 11) +
         right_aligned(to_short_text(link.latency), 9) +
         right_aligned(std::to_string(link.lanes), 6);
}

constexpr std::size_t kLinkWidth = 35;
const std::string kLinkHead = "   promised     usable  latency lanes";
const std::string kLinkNote =
    "\npromised: the line rate of the data sheet. usable: the part of it that transfers were "
    "measured to reach, which simulations take.\n";

std::string link_classes(const Topology& topology) {
  struct Class {
    int count = 0;
    int missing = 0;
    const Link* first = nullptr;
  };
  std::map<std::tuple<std::string, double, double, int>, Class> classes;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    Class& alike = classes[{link_pattern(link.name), link.bandwidth.value(), link.latency.value(),
                            link.lanes}];
    ++alike.count;
    alike.missing += topology.is_missing(LinkId(static_cast<std::int32_t>(i))) ? 1 : 0;
    alike.first = &link;
  }
  std::string text =
      "\n" + left_aligned("links, one direction", kLinkWidth) + "  count" + kLinkHead + "\n";
  for (const auto& [key, alike] : classes) {
    text += left_aligned(std::get<0>(key), kLinkWidth) +
            right_aligned(std::to_string(alike.count), 7) +
            link_figures(*alike.first, topology.cluster());
    if (alike.missing > 0) text += "  " + std::to_string(alike.missing) + " missing";
    text += "\n";
  }
  return text;
}

std::string all_links(const Topology& topology) {
  std::string text = "\n" + left_aligned("links, one direction", kLinkWidth) + kLinkHead + "\n";
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const bool missing = topology.is_missing(LinkId(static_cast<std::int32_t>(i)));
    text += left_aligned(topology.links()[i].name, kLinkWidth) +
            link_figures(topology.links()[i], topology.cluster()) + (missing ? "  missing" : "") +
            "\n";
  }
  return text;
}

}  // namespace

std::string link_pattern(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) pattern += c;
    if (digit && (pattern.empty() || pattern.back() != '*')) pattern += '*';
  }
  return pattern;
}

std::string topology_text(const Topology& topology, const TopologyMetrics& metrics,
                          bool every_link) {
  return topology_head(topology) + "\n" + figure_lines(topology, metrics) + matrix(topology) +
         (every_link ? all_links(topology) : link_classes(topology)) + kLinkNote;
}

}  // namespace tessera
