#include "app/html/topology_page.h"

#include <map>
#include <utility>

#include "app/html/data/drawn_topology.h"
#include "app/html/data/provenance_data.h"
#include "app/html/page.h"
#include "hw/promised_rate.h"
#include "sim/report/drawings/topology_drawing.h"
#include "sim/report/text/topology_text.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson rate_card(const char* name, BytesPerSecond rate, const std::string& detail) {
  return {{"name", name}, {"kind", "GB/s"}, {"value", rate.value() / 1e9}, {"detail", detail}};
}

PageJson cards_of(const Topology& topology, const TopologyMetrics& metrics) {
  PageJson cards = PageJson::array();
  const auto add = [&](const char* name, BytesPerSecond rate, const std::string& detail) {
    if (rate.value() > 0) cards.push_back(rate_card(name, rate, detail));
  };
  add("NVLink per GPU", metrics.nvlink_per_gpu, "out of GPU 0, all its NVLinks");
  add("network per GPU", metrics.network_per_gpu, "its part of the node's NICs");
  add("host copy per GPU", metrics.host_per_gpu, "GPU 0 to host memory, alone");
  add("bisection bandwidth", metrics.bisection, "from the lower half of the GPUs to the upper");
  if (topology.cluster().node_count > 1)
    cards.push_back({{"name", "oversubscription"},
                     {"kind", ""},
                     {"value", metrics.oversubscription},
                     {"detail", "network of that half over the bisection; 1 = non-blocking"}});
  add("shift by half", metrics.shift_rate,
      "slowest GPU when all send half the cluster away, on their own routes");
  return cards;
}

PageJson row_of(const Link& link, const ClusterSpec& cluster) {
  return {{"name", link_pattern(link.name)},
          {"technology", words_of(link.technology)},
          {"count", 0},
          {"rate", link.bandwidth.value()},
          {"promised", promised_rate(link, cluster).value()},
          {"latency_s", link.latency.value()},
          {"lanes", link.lanes}};
}

/// A row for all links of one pattern of names and one rate; `row_of_link` gets whose is whose.
PageJson rows_of(const Topology& topology, std::map<LinkId, int>& row_of_link) {
  PageJson rows = PageJson::array();
  std::map<std::pair<std::string, double>, std::size_t> alike;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const LinkId id(static_cast<std::int32_t>(i));
    const Link& link = topology.link(id);
    if (topology.is_missing(id)) continue;
    const auto [at, is_new] =
        alike.try_emplace({link_pattern(link.name), link.bandwidth.value()}, rows.size());
    if (is_new) rows.push_back(row_of(link, topology.cluster()));
    rows[at->second]["count"] = rows[at->second]["count"].get<int>() + 1;
    row_of_link[id] = static_cast<int>(at->second);
  }
  return rows;
}

}  // namespace

std::string topology_page(const Topology& topology, const TopologyMetrics& metrics,
                          const std::string& tessera_version) {
  const ClusterSpec& cluster = topology.cluster();
  std::map<LinkId, int> row_of_link;
  PageJson rows = rows_of(topology, row_of_link);
  PageJson page{
      {"title", cluster.id},
      {"subtitle", std::to_string(cluster.node_count) + " x " + cluster.node.id + ", " +
                       std::to_string(topology.gpu_count()) + " x " + cluster.node.gpu.id}};
  page["cards"] = cards_of(topology, metrics);
  page["network"] = {{"rows", std::move(rows)},
                     {"drawing", drawn_topology(draw_topology(topology), row_of_link)}};
  page["provenance"] = provenance_data(tessera_version);
  return html_page(page);
}

}  // namespace tessera
