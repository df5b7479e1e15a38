#include "app/html/data/drawn_topology.h"

#include <cmath>
#include <utility>

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson rounded_box(const SvgBox& box) {
  return {std::round(box.x), std::round(box.y), std::round(box.width), std::round(box.height)};
}

}  // namespace

PageJson drawn_topology(const TopologyDrawing& drawing, const std::map<LinkId, int>& row_of_link) {
  PageJson frames = PageJson::array();
  for (const DrawnBox& frame : drawing.frames)
    frames.push_back({{"box", rounded_box(frame.box)}, {"name", frame.name}});
  PageJson lines = PageJson::array();
  for (const DrawnLine& line : drawing.lines) {
    PageJson points = PageJson::array();
    for (const SvgPoint& point : line.points)
      points.push_back({std::round(point.x), std::round(point.y)});
    PageJson rows = PageJson::array();
    for (const LinkId link : line.links) {
      const auto row = row_of_link.find(link);
      if (row != row_of_link.end()) rows.push_back(row->second);
    }
    lines.push_back(
        {{"points", std::move(points)}, {"rows", std::move(rows)}, {"title", line.title}});
  }
  PageJson places = PageJson::array();
  for (const DrawnPlace& place : drawing.places)
    places.push_back({{"box", rounded_box(place.shape.box)},
                      {"name", label_of(place)},
                      {"fill", look_of(place.kind).fill}});
  return {{"width", drawing.width},    {"height", drawing.height},
          {"note", drawing.note},      {"frames", std::move(frames)},
          {"lines", std::move(lines)}, {"places", std::move(places)}};
}

}  // namespace tessera
