#include "sim/report/drawings/topology_svg.h"

#include <algorithm>
#include <string_view>

#include "sim/report/drawings/topology_drawing.h"

namespace tessera {
namespace {

/// Of the palette (sim/report/palette.h), as pages have them: app/html/page/links.js.
std::string_view colour_of(const DrawnLine& line) {
  if (line.is_degraded) return "#cc3311";
  switch (line.technology.value_or(LinkTechnology::pcie)) {
    case LinkTechnology::nvlink:
      return "#6cc683";
    case LinkTechnology::nic:
    case LinkTechnology::fabric:
      return "#3156bb";
    case LinkTechnology::nvme:
    case LinkTechnology::host_memory:
      return "#e77ed3";
    case LinkTechnology::pcie:
    case LinkTechnology::c2c:
      break;
  }
  return "#f59910";
}

void draw_place(SvgCanvas& canvas, const DrawnPlace& place) {
  const SvgBox& box = place.shape.box;
  canvas.rect(box, look_of(place.kind).fill);
  const std::string label = label_of(place);
  const double fitting = box.width / (0.58 * static_cast<double>(label.size()));
  const double size = std::min(11.0, fitting);
  if (size >= 4)
    canvas.text({box.x + box.width / 2, box.y + box.height / 2 + size / 3}, label,
                {.size = size, .anchor = TextAnchor::middle});
}

}  // namespace

std::string topology_svg(const Topology& topology) {
  const TopologyDrawing drawing = draw_topology(topology);
  SvgCanvas canvas(drawing.width, drawing.height);
  canvas.rect({0, 0, drawing.width, drawing.height}, "#ffffff");
  canvas.text({24, 22}, drawing.title, {.size = 15, .bold = true});
  canvas.text({24, 40}, drawing.note, {.fill = "#777777"});
  for (const DrawnBox& frame : drawing.frames) {
    canvas.rect(frame.box, "#f5f5f5");
    canvas.text({frame.box.x + 4, frame.box.y + 12}, frame.name, {.size = 10});
  }
  for (const DrawnLine& line : drawing.lines) {
    canvas.begin_group(line.title.empty() ? "slot" : line.title);
    for (std::size_t i = 1; i < line.points.size(); ++i)
      canvas.line(line.points[i - 1], line.points[i], colour_of(line));
    canvas.end_group();
  }
  for (const DrawnPlace& place : drawing.places) draw_place(canvas, place);
  return canvas.finish();
}

}  // namespace tessera
