#include "app/html/data/link_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "app/html/data/drawn_topology.h"
#include "hw/promised_rate.h"
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
          {"promised", promised_rate(link, topology.cluster()).value()},
          {"use", std::move(shares)}};
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
          {"rows", std::move(rows)},    {"drawing", drawn_topology(drawing, row_of_link)}};
}

}  // namespace tessera
