#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/topology/topology.h"
#include "sim/report/drawings/alike_nodes.h"
#include "sim/report/drawings/svg_canvas.h"

namespace tessera {

struct DrawnBox {
  SvgBox box;
  std::string name;
};

struct DrawnPlace {
  DrawnBox shape;
  PlaceKind kind = PlaceKind::gpu;
};

/// A cable, or the slot of a NIC.
struct DrawnLine {
  std::vector<SvgPoint> points;
  std::optional<LinkTechnology> technology = {};  ///< none: a slot, never a bottleneck
  std::vector<LinkId> links = {};                 ///< its directions
  bool is_degraded = false;
  std::string title = {};  ///< its name, technology and rate
};

/// Where the parts of a topology are drawn: switches of the fabric above, by tiers, the nodes below
/// with their NICs, sockets, PCIe switches, GPUs and NVLinks. Nodes that look alike are drawn once.
/// Of large clusters the first nodes and the switches that these hang on; `note` says what is left
/// out.
struct TopologyDrawing {
  double width = 0;
  double height = 0;
  std::string title;
  std::string note = {};
  std::vector<DrawnBox> frames = {};  ///< nodes
  std::vector<DrawnLine> lines = {};
  std::vector<DrawnPlace> places = {};
};

/// `look`: what else nodes must have in common to be drawn as one.
TopologyDrawing draw_topology(const Topology& topology, const LinkLook& look = {});

std::string_view words_of(LinkTechnology technology);

/// The colour of a place, and the words for its kind.
struct PlaceLook {
  PlaceKind kind;
  std::string_view fill;
  std::string_view label;
};
const PlaceLook& look_of(PlaceKind kind);
/// What stands in the box: its kind and number, of a switch its name.
std::string label_of(const DrawnPlace& place);

}  // namespace tessera
