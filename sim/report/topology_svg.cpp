#include "sim/report/topology_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "hw/topology_graph.h"
#include "hw/units/text.h"
#include "sim/report/svg_canvas.h"

namespace tessera {
namespace {

constexpr int kMostNodes = 8;
constexpr std::size_t kMostSwitchesPerTier = 24;

// Lengths in pixels.
constexpr double kMargin = 24;
constexpr double kTitle = 56;
constexpr double kColumn = 44;  // per GPU of a node
constexpr double kNodeGap = 20;
constexpr double kRow = 56;  // between rows
constexpr double kBoxHeight = 18;
constexpr double kTierGap = 70;

/// Rows of a node from above; places of one kind share a row.
const std::vector<PlaceKind> kRows{PlaceKind::nic, PlaceKind::socket, PlaceKind::pcie_switch,
                                   PlaceKind::gpu, PlaceKind::nvswitch};

struct Look {
  PlaceKind kind;
  std::string_view fill;
  std::string_view label;
};

// Paul Tol's "light" scheme.
constexpr Look kLooks[] = {
    {PlaceKind::gpu, "#bbcc33", "GPU"},          {PlaceKind::nvswitch, "#44bb99", "NVSwitch"},
    {PlaceKind::pcie_switch, "#eedd88", "PCIe"}, {PlaceKind::socket, "#dddddd", "CPU"},
    {PlaceKind::nic, "#ee8866", "NIC"},          {PlaceKind::host_memory, "#dddddd", "memory"},
    {PlaceKind::nvme, "#ffaabb", "NVMe"},        {PlaceKind::fabric_switch, "#77aadd", "switch"}};

const Look& look_of(PlaceKind kind) {
  return *std::ranges::find(kLooks, kind, &Look::kind);
}

std::string_view colour_of(LinkTechnology technology) {
  switch (technology) {
    case LinkTechnology::nvlink:
      return "#228833";
    case LinkTechnology::nic:
    case LinkTechnology::fabric:
      return "#4477aa";
    case LinkTechnology::nvme:
    case LinkTechnology::host_memory:
      return "#aa3377";
    case LinkTechnology::pcie:
    case LinkTechnology::c2c:
      break;
  }
  return "#999933";
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology),
        graph_(graph_of(topology)),
        nodes_(std::min(kMostNodes, topology.cluster().node_count)) {
    choose_tiers();
    place_switches();
    place_nodes();
  }

  std::string draw() {
    SvgCanvas canvas(width_, height_);
    canvas.rect({0, 0, width_, height_}, "#ffffff");
    draw_title(canvas);
    for (int node = 0; node < nodes_; ++node) draw_frame(canvas, node);
    for (const TopologyGraph::Edge& edge : graph_.edges) draw_edge(canvas, edge);
    for (const auto& [place, box] : boxes_) draw_place(canvas, place, box);
    return canvas.finish();
  }

 private:
  bool is_shown_node(int place) const {
    const int node = graph_.places[static_cast<std::size_t>(place)].node;
    return node >= 0 && node < nodes_;
  }

  /// Switches by their distance in hops from the NICs that are shown.
  void choose_tiers() {
    std::vector<std::vector<int>> out(graph_.places.size());
    std::vector<int> tier(graph_.places.size(), -1);
    std::vector<int> reached;
    for (const TopologyGraph::Edge& edge : graph_.edges) {
      out[static_cast<std::size_t>(edge.from)].push_back(edge.to);
      const bool enters = is_switch(edge.to) && is_shown_node(edge.from);
      if (!enters || tier[static_cast<std::size_t>(edge.to)] == 0) continue;
      tier[static_cast<std::size_t>(edge.to)] = 0;
      reached.push_back(edge.to);
    }
    while (!reached.empty() && tiers_.size() < 4) {
      hidden_.push_back(
          reached.size() > kMostSwitchesPerTier ? reached.size() - kMostSwitchesPerTier : 0);
      reached.resize(std::min(reached.size(), kMostSwitchesPerTier));
      tiers_.push_back(reached);
      std::vector<int> next;
      for (const int place : tiers_.back()) {
        for (const int other : out[static_cast<std::size_t>(place)]) {
          int& level = tier[static_cast<std::size_t>(other)];
          if (!is_switch(other) || level >= 0) continue;
          level = static_cast<int>(tiers_.size());
          next.push_back(other);
        }
      }
      reached = next;
    }
  }

  bool is_switch(int place) const {
    return graph_.places[static_cast<std::size_t>(place)].kind == PlaceKind::fabric_switch;
  }

  double node_width() const {
    return kColumn * std::max(2, topology_.cluster().node.gpu_count) + 12;
  }

  void place_switches() {
    width_ = 2 * kMargin + nodes_ * (node_width() + kNodeGap) - kNodeGap;
    width_ = std::max(width_, 620.0);
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      const double y = kTitle + kTierGap * static_cast<double>(tiers_.size() - 1 - tier);
      const double step = (width_ - 2 * kMargin) / static_cast<double>(tiers_[tier].size());
      for (std::size_t i = 0; i < tiers_[tier].size(); ++i) {
        const double x = kMargin + step * (static_cast<double>(i) + 0.5);
        const double box = std::min(96.0, step - 2);
        boxes_[tiers_[tier][i]] = {x - box / 2, y, box, kBoxHeight};
      }
    }
  }

  void place_nodes() {
    top_ = kTitle + kTierGap * static_cast<double>(tiers_.size());
    std::map<std::pair<int, PlaceKind>, std::vector<int>> rows;
    for (std::size_t i = 0; i < graph_.places.size(); ++i) {
      const TopologyGraph::Place& place = graph_.places[i];
      if (is_shown_node(static_cast<int>(i)))
        rows[{place.node, place.kind}].push_back(static_cast<int>(i));
    }
    double y = top_ + 24;
    for (const PlaceKind kind : kRows) {
      if (!rows.contains({0, kind})) continue;
      for (int node = 0; node < nodes_; ++node) place_row(rows[{node, kind}], node, y);
      y += kRow;
    }
    for (const PlaceKind kind : {PlaceKind::host_memory, PlaceKind::nvme}) place_beside(rows, kind);
    bottom_ = y - kRow + kBoxHeight + 34;
    height_ = bottom_ + kMargin;
  }

  double left_of(int node) const { return kMargin + node * (node_width() + kNodeGap); }

  void place_row(const std::vector<int>& places, int node, double y) {
    const double step = node_width() / static_cast<double>(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double width = std::min(step - 4, 96.0);
      const double x = left_of(node) + step * (static_cast<double>(i) + 0.5) - width / 2;
      boxes_[places[i]] = {x, y, width, kBoxHeight};
    }
  }

  /// Memories and drives stand left and right of their sockets.
  void place_beside(std::map<std::pair<int, PlaceKind>, std::vector<int>>& rows, PlaceKind kind) {
    for (int node = 0; node < nodes_; ++node) {
      const std::vector<int>& sockets = rows[{node, PlaceKind::socket}];
      const std::vector<int>& places = rows[{node, kind}];
      const double step = node_width() / static_cast<double>(sockets.size());
      const double width = std::min(step / 3 - 2, 44.0);
      for (std::size_t i = 0; i < places.size(); ++i) {
        const SvgBox& socket = boxes_[sockets[i]];
        const double centre = socket.x + socket.width / 2;
        const double shift = step / 3 * (kind == PlaceKind::nvme ? 1 : -1);
        boxes_[places[i]] = {centre + shift - width / 2, socket.y, width, kBoxHeight};
      }
      for (const int socket : sockets) {
        if (places.empty()) break;
        SvgBox& box = boxes_[socket];
        const double narrow = std::min(box.width, step / 3 - 2);
        box.x += (box.width - narrow) / 2;
        box.width = narrow;
      }
    }
  }

  void draw_title(SvgCanvas& canvas) const {
    const ClusterSpec& cluster = topology_.cluster();
    canvas.text({kMargin, 22}, cluster.id, {.size = 15, .bold = true});
    std::string note = std::to_string(cluster.node_count) + " x " + cluster.node.id + ", " +
                       std::to_string(topology_.gpu_count()) + " GPUs";
    if (nodes_ < cluster.node_count)
      note += "; shown: the first " + std::to_string(nodes_) + " nodes";
    for (std::size_t tier = 0; tier < hidden_.size(); ++tier) {
      if (hidden_[tier] == 0) continue;
      note += "; " + std::to_string(hidden_[tier]) + " more switches in tier " +
              std::to_string(tier + 1);
    }
    canvas.text({kMargin, 40}, note, {.fill = "#777777"});
  }

  void draw_frame(SvgCanvas& canvas, int node) const {
    const double y = top_ + 4;
    canvas.rect({left_of(node) - 4, y, node_width() + 8, bottom_ - y}, "#f5f5f5");
    canvas.text({left_of(node), y + 12}, "node " + std::to_string(node), {.size = 10});
  }

  /// One line per cable: that of the direction whose beginning has the lower number.
  void draw_edge(SvgCanvas& canvas, const TopologyGraph::Edge& edge) const {
    const auto from = boxes_.find(edge.from);
    const auto to = boxes_.find(edge.to);
    if (from == boxes_.end() || to == boxes_.end() || edge.from > edge.to) return;
    std::string_view colour = "#999933";
    if (edge.link.valid()) colour = colour_of(topology_.link(edge.link).technology);
    if (is_degraded(edge)) colour = "#cc3311";
    const SvgPoint a = centre(from->second);
    const SvgPoint b = centre(to->second);
    if (a.y != b.y) return canvas.line(a, b, colour);
    // Side by side: bulge below the row, deeper the farther apart.
    const SvgPoint low{(a.x + b.x) / 2, a.y + 14 + 0.07 * std::abs(b.x - a.x)};
    canvas.line(a, low, colour);
    canvas.line(low, b, colour);
  }

  bool is_degraded(const TopologyGraph::Edge& edge) const {
    if (!edge.link.valid()) return false;
    const int node = std::max(graph_.places[static_cast<std::size_t>(edge.from)].node,
                              graph_.places[static_cast<std::size_t>(edge.to)].node);
    const bool of_fabric = node < 0;
    const int first =
        (of_fabric ? topology_.link_of_fabric(0) : topology_.link_of_node(node, 0)).index();
    const auto index = static_cast<std::size_t>(edge.link.index() - first);
    const Link& whole = of_fabric ? topology_.fabric().graph().links()[index]
                                  : topology_.node_links(node).links()[index];
    return topology_.link(edge.link).bandwidth < whole.bandwidth;
  }

  static SvgPoint centre(const SvgBox& box) {
    return {box.x + box.width / 2, box.y + box.height / 2};
  }

  void draw_place(SvgCanvas& canvas, int place, const SvgBox& box) const {
    const TopologyGraph::Place& shown = graph_.places[static_cast<std::size_t>(place)];
    const Look& look = look_of(shown.kind);
    canvas.rect(box, look.fill);
    std::string label = shown.name;
    if (shown.kind != PlaceKind::fabric_switch) {
      const std::size_t digit = shown.name.find_first_of("0123456789");
      label =
          std::string(look.label) + (digit == std::string::npos ? "" : shown.name.substr(digit));
    }
    const double fitting = box.width / (0.58 * static_cast<double>(label.size()));
    const double size = std::min(11.0, fitting);
    if (size < 4) return;
    canvas.text({box.x + box.width / 2, box.y + box.height / 2 + size / 3}, label,
                {.size = size, .anchor = TextAnchor::middle});
  }

  const Topology& topology_;
  TopologyGraph graph_;
  int nodes_;
  std::vector<std::vector<int>> tiers_;  ///< switches, those next to the NICs first
  std::vector<std::size_t> hidden_;      ///< switches left out, by tier
  std::map<int, SvgBox> boxes_;          ///< of the places that are drawn
  double width_ = 0;
  double height_ = 0;
  double top_ = 0;
  double bottom_ = 0;
};

}  // namespace

std::string topology_svg(const Topology& topology) {
  return Drawing(topology).draw();
}

}  // namespace tessera
