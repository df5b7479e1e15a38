#include "sim/collectives/measured_fabric.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "hw/units/text.h"
#include "sim/collectives/collective.h"

namespace tessera {
namespace {

constexpr CollectiveCall kMeasured{.kind = CollectiveKind::all_reduce, .bytes = 1_GiB};

/// Of `kMeasured` over all GPUs.
struct AllReduce {
  Seconds time;
  Seconds latency;
  BytesPerSecond bus;
};

/// Bytes of nccl-tests' bus bandwidth.
double bus_bytes(int ranks) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(kMeasured.bytes.value());
}

AllReduce all_reduce_over(const ClusterSpec& cluster, const CollectiveTuning& tuning) {
  std::vector<int> ranks(static_cast<std::size_t>(cluster.gpu_count()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const CollectiveCost cost = collective_cost(Topology(cluster), kMeasured, ranks, tuning);
  return {cost.solo_time, cost.latency,
          BytesPerSecond(bus_bytes(cluster.gpu_count()) / cost.solo_time.value())};
}

}  // namespace

// Transfers take a time in proportion to 1 / share, but for the algorithm that NCCL chooses: a few
// steps come within a thousandth.
MeasuredFabric measured_fabric(const ClusterSpec& cluster, const CollectiveTuning& tuning) {
  MeasuredFabric fabric{.cluster = cluster, .promised = {}};
  const BytesPerSecond measured = cluster.measured_all_reduce;
  if (measured.value() <= 0 || cluster.node_count == 1) return fabric;
  AllReduce now = all_reduce_over(cluster, tuning);
  fabric.promised = now.bus;
  if (now.bus <= measured) return fabric;
  const Seconds wanted(bus_bytes(cluster.gpu_count()) / measured.value());
  constexpr int kSteps = 12;
  constexpr double kClose = 1e-3;
  for (int i = 0; i < kSteps && std::abs(now.time / wanted - 1) > kClose; ++i) {
    const bool by_latency = wanted <= now.latency;
    fabric.nic_share *=
        by_latency ? now.time / wanted : (now.time - now.latency) / (wanted - now.latency);
    if (fabric.nic_share > 1) fabric.nic_share = 1;
    fabric.cluster.node.nic_efficiency = cluster.node.nic_efficiency * fabric.nic_share;
    now = all_reduce_over(fabric.cluster, tuning);
  }
  return fabric;
}

std::string note_on_measured_fabric(const MeasuredFabric& fabric) {
  const BytesPerSecond measured = fabric.cluster.measured_all_reduce;
  const std::string both = "an all-reduce over all GPUs was measured at " + to_text(measured) +
                           ", the cluster as described promises " + to_text(fabric.promised);
  if (fabric.nic_share >= 1) return both + ": it is simulated as described";
  const auto percent = static_cast<int>(std::lround(100 * fabric.nic_share));
  return both + ": its NICs are simulated at " + std::to_string(percent) + " % of their rate";
}

}  // namespace tessera
