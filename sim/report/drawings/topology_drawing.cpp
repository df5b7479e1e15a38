#include "sim/report/drawings/topology_drawing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "hw/topology/topology_graph.h"
#include "hw/units/text.h"
#include "sim/report/analysis/rank_list.h"

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
constexpr double kTierGap = 56;

/// Rows of a node from above; places of one kind share a row.
const std::vector<PlaceKind> kRows{PlaceKind::nic, PlaceKind::socket,   PlaceKind::pcie_switch,
                                   PlaceKind::gpu, PlaceKind::nvswitch, PlaceKind::staging_buffer};

class Layout {
 public:
  Layout(const Topology& topology, const LinkLook& look)
      : topology_(topology),
        graph_(graph_of(topology)),
        groups_(alike_nodes(topology, graph_, look)),
        nodes_(std::min(kMostNodes, static_cast<int>(groups_.size()))) {
    for (int column = 0; column < nodes_; ++column) column_of_[group(column).front()] = column;
    choose_tiers();
    place_switches();
    place_nodes();
  }

  TopologyDrawing draw() {
    TopologyDrawing drawing{.width = width_, .height = height_, .title = topology_.cluster().id};
    drawing.note = note();
    for (int column = 0; column < nodes_; ++column) drawing.frames.push_back(frame_of(column));
    add_lines(drawing);
    for (const auto& [place, box] : boxes_) drawing.places.push_back(drawn_place(place, box));
    return drawing;
  }

 private:
  bool is_shown_node(int place) const {
    return column_of_.contains(graph_.places[static_cast<std::size_t>(place)].node);
  }

  /// Nodes that are drawn in a column.
  const std::vector<int>& group(int column) const {
    return groups_[static_cast<std::size_t>(column)];
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
    const double of_nodes = nodes_ * (node_width() + kNodeGap) - kNodeGap;
    width_ = std::max(2 * kMargin + of_nodes, 480.0);
    left_ = (width_ - of_nodes) / 2;
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
        rows[{column_of_.at(place.node), place.kind}].push_back(static_cast<int>(i));
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

  double left_of(int column) const { return left_ + column * (node_width() + kNodeGap); }

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

  std::string note() const {
    const ClusterSpec& cluster = topology_.cluster();
    std::string note = std::to_string(cluster.node_count) + " x " + cluster.node.id + ", " +
                       std::to_string(topology_.gpu_count()) + " GPUs";
    if (static_cast<int>(groups_.size()) < cluster.node_count) note += "; alike nodes drawn once";
    if (nodes_ < static_cast<int>(groups_.size()))
      note += "; shown: the first " + std::to_string(nodes_) + " of " +
              std::to_string(groups_.size()) + " kinds";
    for (std::size_t tier = 0; tier < hidden_.size(); ++tier) {
      if (hidden_[tier] == 0) continue;
      note += "; " + std::to_string(hidden_[tier]) + " more switches in tier " +
              std::to_string(tier + 1);
    }
    return note;
  }

  DrawnBox frame_of(int column) const {
    const double y = top_ + 4;
    const std::vector<int>& nodes = group(column);
    const std::string name = nodes.size() == 1
                                 ? "node " + std::to_string(nodes.front())
                                 : std::to_string(nodes.size()) + " nodes: " + rank_list(nodes);
    return {{left_of(column) - 4, y, node_width() + 8, bottom_ - y}, name};
  }

  /// One line per cable, where the direction from the lower number comes; the other one joins it.
  void add_lines(TopologyDrawing& drawing) const {
    std::map<std::pair<int, int>, std::vector<LinkId>> back;
    for (const TopologyGraph::Edge& edge : graph_.edges) {
      if (edge.from > edge.to && edge.link.valid()) back[{edge.to, edge.from}].push_back(edge.link);
    }
    for (const TopologyGraph::Edge& edge : graph_.edges) {
      const auto from = boxes_.find(edge.from);
      const auto to = boxes_.find(edge.to);
      if (from == boxes_.end() || to == boxes_.end() || edge.from > edge.to) continue;
      DrawnLine line{.points = points_of(centre(from->second), centre(to->second))};
      if (edge.link.valid()) {
        line.technology = topology_.link(edge.link).technology;
        line.title = title_of(topology_.link(edge.link));
        line.links = {edge.link};
      }
      line.is_degraded = is_degraded(edge);
      std::vector<LinkId>& others = back[{edge.from, edge.to}];
      if (!others.empty()) {
        line.links.push_back(others.front());
        others.erase(others.begin());
      }
      drawing.lines.push_back(std::move(line));
    }
  }

  static std::string title_of(const Link& link) {
    return link.name + ", " + std::string(words_of(link.technology)) + ", " +
           to_short_text(link.bandwidth);
  }

  static std::vector<SvgPoint> points_of(SvgPoint a, SvgPoint b) {
    if (a.y != b.y) return {a, b};
    // Side by side: bulge below the row, deeper the farther apart.
    return {a, {(a.x + b.x) / 2, a.y + 14 + 0.07 * std::abs(b.x - a.x)}, b};
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

  DrawnPlace drawn_place(int place, const SvgBox& box) const {
    const TopologyGraph::Place& shown = graph_.places[static_cast<std::size_t>(place)];
    return {{box, shown.name}, shown.kind};
  }

  const Topology& topology_;
  TopologyGraph graph_;
  std::vector<std::vector<int>> groups_;  ///< nodes that look alike
  int nodes_;                             ///< columns of the drawing: groups of nodes
  std::map<int, int> column_of_;          ///< by the first node of a group
  std::vector<std::vector<int>> tiers_;   ///< switches, those next to the NICs first
  std::vector<std::size_t> hidden_;       ///< switches left out, by tier
  std::map<int, SvgBox> boxes_;           ///< of the places that are drawn
  double width_ = 0;
  double height_ = 0;
  double left_ = 0;
  double top_ = 0;
  double bottom_ = 0;
};

// Paul Tol's "light" scheme: places have dark words on them.
constexpr PlaceLook kLooks[] = {{PlaceKind::gpu, "#bbcc33", "GPU"},
                                {PlaceKind::nvswitch, "#44bb99", "NVSwitch"},
                                {PlaceKind::pcie_switch, "#eedd88", "PCIe"},
                                {PlaceKind::socket, "#dddddd", "CPU"},
                                {PlaceKind::nic, "#ee8866", "NIC"},
                                {PlaceKind::host_memory, "#dddddd", "memory"},
                                {PlaceKind::nvme, "#ffaabb", "NVMe"},
                                {PlaceKind::fabric_switch, "#77aadd", "switch"},
                                {PlaceKind::staging_buffer, "#dddddd", "buffer"}};

}  // namespace

const PlaceLook& look_of(PlaceKind kind) {
  return *std::ranges::find(kLooks, kind, &PlaceLook::kind);
}

std::string label_of(const DrawnPlace& place) {
  const std::string& name = place.shape.name;
  if (place.kind == PlaceKind::fabric_switch) return name;
  const std::size_t digit = name.find_first_of("0123456789");
  return std::string(look_of(place.kind).label) +
         (digit == std::string::npos ? "" : name.substr(digit));
}

std::string_view words_of(LinkTechnology technology) {
  switch (technology) {
    case LinkTechnology::nvlink:
      return "NVLink";
    case LinkTechnology::pcie:
      return "PCIe";
    case LinkTechnology::c2c:
      return "C2C";
    case LinkTechnology::nic:
      return "NIC";
    case LinkTechnology::host_memory:
      return "host memory";
    case LinkTechnology::nvme:
      return "NVMe";
    case LinkTechnology::fabric:
      return "fabric";
  }
  return "";
}

TopologyDrawing draw_topology(const Topology& topology, const LinkLook& look) {
  return Layout(topology, look).draw();
}

}  // namespace tessera
