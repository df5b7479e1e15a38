#include "hw/topology/topology_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hw/topology/max_flow.h"
#include "hw/topology/topology_graph.h"

namespace tessera {
namespace {

constexpr int kAllPairsUpTo = 512;                          // GPUs
constexpr std::int64_t kUnbounded = 1'000'000'000'000'000;  // bytes per second; above any link

BytesPerSecond narrowest(const Topology& topology, const Route& route) {
  BytesPerSecond rate{std::numeric_limits<double>::infinity()};
  for (const LinkId id : route.links) rate = std::min(rate, topology.link(id).bandwidth);
  return rate;
}

/// GPUs of a single node do not go out and in again.
BytesPerSecond bisection_of(const Topology& topology) {
  const TopologyGraph graph = graph_of(topology);
  const int source = static_cast<int>(graph.places.size());
  const int sink = source + 1;
  MaxFlow flow(sink + 1);
  const bool uses_nics = topology.cluster().node_count > 1;
  for (const TopologyGraph::Edge& edge : graph.edges) {
    const bool is_nic =
        edge.link.valid() && topology.link(edge.link).technology == LinkTechnology::nic;
    if (is_nic && !uses_nics) continue;
    const std::int64_t capacity =
        edge.link.valid() ? std::llround(topology.link(edge.link).bandwidth.value()) : kUnbounded;
    flow.add_edge(edge.from, edge.to, capacity);
  }
  const std::size_t half = graph.gpus.size() / 2;
  for (std::size_t gpu = 0; gpu < 2 * half; ++gpu) {
    const bool lower = gpu < half;
    flow.add_edge(lower ? source : graph.gpus[gpu], lower ? graph.gpus[gpu] : sink, kUnbounded);
  }
  return BytesPerSecond(static_cast<double>(flow.between(source, sink)));
}

BytesPerSecond nvlink_of(const Topology& topology, int gpu) {
  const NodeLinks& node = topology.node_links(topology.node_of(gpu));
  const int local = gpu % topology.cluster().node.gpu_count;
  BytesPerSecond sum;
  for (std::size_t i = 0; i < node.ends().size(); ++i) {
    const LinkId id = topology.link_of_node(topology.node_of(gpu), static_cast<int>(i));
    const Link& link = topology.link(id);
    const bool out = node.ends()[i].from == local && link.technology == LinkTechnology::nvlink;
    if (out && !topology.is_missing(id)) sum += link.bandwidth;
  }
  return sum;
}

void add_endpoint_rates(const Topology& topology, TopologyMetrics& metrics) {
  const NodeSpec& node = topology.cluster().node;
  metrics.nvlink_per_gpu = nvlink_of(topology, 0);
  metrics.host_per_gpu = narrowest(topology, topology.device_to_host(0));
  if (topology.has_nvme()) {
    metrics.nvme_per_gpu = narrowest(topology, topology.nvme_to_device(0));
  }
  const int nics = nic_bundles(node);
  if (nics > 0) metrics.network_per_gpu = nic_bundle_rate(node) * nics / node.gpu_count;
}

void add_shift_rate(const Topology& topology, TopologyMetrics& metrics) {
  const int gpus = topology.gpu_count();
  if (gpus < 2) return;
  std::vector<int> users(topology.links().size());
  const auto partner = [&](int gpu) { return (gpu + gpus / 2) % gpus; };
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (const LinkId id : topology.route(gpu, partner(gpu)).links) {
      ++users[static_cast<std::size_t>(id.index())];
    }
  }
  metrics.shift_rate = BytesPerSecond(std::numeric_limits<double>::infinity());
  for (std::size_t link = 0; link < users.size(); ++link) {
    if (users[link] == 0) continue;
    const BytesPerSecond share = topology.links()[link].bandwidth / users[link];
    metrics.shift_rate = std::min(metrics.shift_rate, share);
  }
}

void add_diameter(const Topology& topology, TopologyMetrics& metrics) {
  const int gpus = topology.gpu_count();
  metrics.all_pairs = gpus <= kAllPairsUpTo;
  const int step = std::max(1, gpus / kAllPairsUpTo);
  for (int from = 0; from < gpus; from += step) {
    for (int to = 0; to < gpus; to += step) {
      // Samples visit every place in a node, too.
      const int target = metrics.all_pairs ? to : std::min(gpus - 1, to + from / step % step);
      if (from == target) continue;
      const Route route = topology.route(from, target);
      ++metrics.pairs;
      metrics.diameter = std::max(metrics.diameter, static_cast<int>(route.links.size()));
      metrics.diameter_latency = std::max(metrics.diameter_latency, route.latency);
    }
  }
}

}  // namespace

TopologyMetrics metrics_of(const Topology& topology) {
  TopologyMetrics metrics;
  add_endpoint_rates(topology, metrics);
  add_shift_rate(topology, metrics);
  add_diameter(topology, metrics);
  metrics.bisection = bisection_of(topology);
  const int nodes = topology.cluster().node_count;
  if (nodes > 1) {
    const BytesPerSecond wanted =
        metrics.network_per_gpu * static_cast<double>(topology.gpu_count() / 2);
    metrics.oversubscription = wanted / metrics.bisection;
  }
  return metrics;
}

}  // namespace tessera
