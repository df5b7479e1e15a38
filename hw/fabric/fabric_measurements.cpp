#include "hw/fabric/fabric_measurements.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tessera {
namespace {

using Table = std::vector<FabricMeasurement>;

/// The first entry of as many nodes or more.
Table::const_iterator entry_of(const ClusterSpec& cluster) {
  return std::ranges::lower_bound(cluster.measured_fabric, cluster.node_count, {},
                                  &FabricMeasurement::nodes);
}

/// `share` of the way from one rate to the other, by their logarithms; 0 stays 0.
BytesPerSecond rate_between(BytesPerSecond from, BytesPerSecond to, double share) {
  if (from.value() <= 0) return {};
  return BytesPerSecond(from.value() * std::pow(to / from, share));
}

std::string nodes_text(int nodes) {
  return std::to_string(nodes) + (nodes == 1 ? " node" : " nodes");
}

void check_entries(const Table& table, Findings& findings) {
  const bool gathers = table.front().all_gather.value() > 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string where = "measured_fabric[" + std::to_string(i) + "]";
    findings.require(
        i == 0 || table[i - 1].nodes < table[i].nodes, where + ".nodes",
        nodes_text(table[i].nodes) + " behind " + nodes_text(table[i == 0 ? 0 : i - 1].nodes),
        "list measurements by ascending nodes, one for each number");
    findings.require((table[i].all_gather.value() > 0) == gathers, where + ".all_gather",
                     "some measurements have an all-gather, others none",
                     "give all_gather for all of them, or for none");
  }
}

void check_reach(const ClusterSpec& cluster, Findings& findings) {
  const int first = cluster.measured_fabric.front().nodes;
  const int last = cluster.measured_fabric.back().nodes;
  const int nodes = cluster.node_count;
  findings.require(
      nodes == 1 || (nodes >= first && nodes <= last), "measured_fabric",
      nodes_text(nodes) + ", measured on " + std::to_string(first) + " to " + nodes_text(last),
      "add a measurement on " + nodes_text(nodes) + " or beyond, or leave measured_fabric out");
}

}  // namespace

FabricMeasurement measurement_of(const ClusterSpec& cluster) {
  if (cluster.node_count == 1) return {};
  if (cluster.measured_fabric.empty())
    return {.nodes = cluster.node_count,
            .all_reduce = cluster.measured_all_reduce,
            .all_gather = cluster.measured_all_gather};
  const auto above = entry_of(cluster);
  if (!is_between_measurements(cluster)) return *above;
  const auto below = above - 1;
  const auto steps = [](int from, int to) { return std::log(static_cast<double>(to) / from); };
  const double share = steps(below->nodes, cluster.node_count) / steps(below->nodes, above->nodes);
  return {.nodes = cluster.node_count,
          .all_reduce = rate_between(below->all_reduce, above->all_reduce, share),
          .all_gather = rate_between(below->all_gather, above->all_gather, share)};
}

bool is_between_measurements(const ClusterSpec& cluster) {
  return !cluster.measured_fabric.empty() && cluster.node_count > 1 &&
         entry_of(cluster)->nodes != cluster.node_count;
}

void check_measured_fabric(const ClusterSpec& cluster, Findings& findings) {
  const bool reduces = cluster.measured_all_reduce.value() > 0;
  const bool gathers = cluster.measured_all_gather.value() > 0;
  findings.require(
      !gathers || reduces, "measured_all_gather", "without measured_all_reduce",
      "give measured_all_reduce too: the two together tell slow links from slow hosts");
  if (cluster.measured_fabric.empty()) return;
  findings.require(!reduces && !gathers, "measured_fabric",
                   "beside measured_all_reduce or measured_all_gather",
                   "give the table, or what was measured at this size");
  check_entries(cluster.measured_fabric, findings);
  if (findings.empty()) check_reach(cluster, findings);
}

}  // namespace tessera
