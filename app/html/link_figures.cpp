#include "app/html/link_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "sim/report/analysis/link_use.h"
#include "sim/report/drawings/topology_drawing.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr int kParts = 160;
constexpr std::size_t kHeatRows = 64;

/// Share of its rate that a link carried over the whole step.
double mean_use(const LinkTraffic& traffic, const LinkUse& use, const Topology& topology) {
  const double bytes = std::accumulate(traffic.bytes.begin(), traffic.bytes.end(), 0.0);
  const double rate = topology.link(traffic.link).bandwidth.value();
  return bytes / (rate * use.part.value() * static_cast<double>(traffic.bytes.size()));
}

/// A millionth is finer than a colour, and short.
PageJson rounded(double share) {
  const double millionths = std::round(share * 1e6);
  return millionths > 0 ? PageJson(millionths / 1e6) : PageJson(0);
}

PageJson row_of(const LinkTraffic& traffic, const LinkUse& use, const Topology& topology) {
  const Link& link = topology.link(traffic.link);
  PageJson shares = PageJson::array();
  for (const double bytes : traffic.bytes)
    shares.push_back(rounded(bytes / (link.bandwidth.value() * use.part.value())));
  return {{"name", link.name},
          {"technology", words_of(link.technology)},
          {"rate", link.bandwidth.value()},
          {"use", std::move(shares)}};
}

PageJson numbers(const SvgBox& box) {
  return {std::round(box.x), std::round(box.y), std::round(box.width), std::round(box.height)};
}

PageJson drawing_of(const TopologyDrawing& drawing, const std::map<LinkId, int>& row_of_link) {
  PageJson frames = PageJson::array();
  for (const DrawnBox& frame : drawing.frames)
    frames.push_back({{"box", numbers(frame.box)}, {"name", frame.name}});
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
    places.push_back({{"box", numbers(place.shape.box)},
                      {"name", label_of(place)},
                      {"fill", look_of(place.kind).fill}});
  return {{"width", drawing.width},    {"height", drawing.height},
          {"note", drawing.note},      {"frames", std::move(frames)},
          {"lines", std::move(lines)}, {"places", std::move(places)}};
}

bool is_worth_it(const TimelineIndex& index) {
  std::size_t ops = 0;
  for (int rank = 0; rank < index.ranks(); ++rank) ops += index.program_of(rank).ops.size();
  return ops <= kMostLinkOps;
}

}  // namespace

PageJson link_figures(const TimelineIndex& index, const TimedProgram& timed) {
  if (index.step_time() <= Seconds(0) || !is_worth_it(index)) return nullptr;
  const Topology& topology = timed.topology;
  LinkUse use = link_use(timed, index, kParts);
  if (use.links.empty()) return nullptr;
  std::ranges::stable_sort(use.links, std::ranges::greater(), [&](const LinkTraffic& traffic) {
    return mean_use(traffic, use, topology);
  });
  // Nodes are drawn as one where every link of the one carries what that of the other does.
  std::map<LinkId, std::string> looks;
  for (const LinkTraffic& traffic : use.links)
    looks[traffic.link] = row_of(traffic, use, topology)["use"].dump();
  const TopologyDrawing drawing = draw_topology(topology, [&](LinkId link) {
    const auto look = looks.find(link);
    return look == looks.end() ? std::string() : look->second;
  });
  std::set<LinkId> drawn;
  for (const DrawnLine& line : drawing.lines) drawn.insert(line.links.begin(), line.links.end());
  std::map<LinkId, int> row_of_link;
  PageJson rows = PageJson::array();
  for (std::size_t i = 0; i < use.links.size(); ++i) {
    const LinkTraffic& traffic = use.links[i];
    if (i >= kHeatRows && !drawn.contains(traffic.link)) continue;
    row_of_link.emplace(traffic.link, static_cast<int>(rows.size()));
    rows.push_back(row_of(traffic, use, topology));
  }
  return {{"part_s", use.part.value()}, {"parts", kParts},
          {"used", use.links.size()},   {"shown", std::min(kHeatRows, use.links.size())},
          {"rows", std::move(rows)},    {"drawing", drawing_of(drawing, row_of_link)}};
}

}  // namespace tessera
