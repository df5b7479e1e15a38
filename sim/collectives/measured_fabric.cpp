#include "sim/collectives/measured_fabric.h"

#include <algorithm>
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

/// NICs that are crowded or half as many leave more than that of what a cluster promises.
constexpr double kLeastOfNics = 1.0 / 3;
/// Longer than any way between two hosts of a data centre takes, threads that pass data on
/// included.
constexpr Seconds kMostPerRank(1e-3);
/// Several times what the host needs for a copy, of which all-gathers into lists make one a rank.
constexpr Seconds kLeastPerRank(0.2e-3);
/// Benchmarks of one machine differ by less.
constexpr double kClearlySlower = 1.2;
/// Of the measured calls; 0: not measured.
struct MeasuredTimes {
  Seconds all_reduce, all_gather;
};

MeasuredTimes measured_times(const ClusterSpec& cluster) {
  const double bytes = bus_bytes(cluster.gpu_count());
  const BytesPerSecond gather = cluster.measured_all_gather;
  return {Seconds(bytes / cluster.measured_all_reduce.value()),
          Seconds(gather.value() > 0 ? bytes / 2 / gather.value() : 0)};
}

/// 0: links are all that is slow.
Seconds host_time_per_rank(const MeasuredTimes& measured, Seconds promised, int ranks) {
  const bool gathers = measured.all_gather.value() > 0;
  const Seconds each = (gathers ? measured.all_gather : measured.all_reduce) / ranks;
  const double slower = measured.all_reduce / promised;
  const bool seen =
      gathers ? slower > kClearlySlower && each >= kLeastPerRank : slower > 1 / kLeastOfNics;
  return seen && each <= kMostPerRank ? each : Seconds(0);
}

/// What links take of a measured all-reduce: no more than twice an all-gather, which moves half the
/// bytes. A host that is slow hides them.
Seconds time_of_links(const MeasuredTimes& measured, Seconds per_rank) {
  if (per_rank.value() > 0) return Seconds(0);
  const bool gathers = measured.all_gather.value() > 0;
  return gathers ? std::min(measured.all_reduce, 2 * measured.all_gather) : measured.all_reduce;
}

/// As many ranks on each of the first `nodes` nodes.
std::vector<int> spread_over(const ClusterSpec& cluster, int ranks, int nodes) {
  std::vector<int> places;
  for (int node = 0; node < nodes; ++node)
    for (int i = 0; i < ranks / nodes; ++i) places.push_back(node * cluster.node.gpu_count + i);
  return places;
}

/// Sizes in steps of four, and how much longer than predicted a call takes that takes `least`.
std::vector<SizeCorrection> corrections_to(Seconds least, const Topology& topology,
                                           CollectiveKind kind, const std::vector<int>& ranks,
                                           const CollectiveTuning& tuning) {
  constexpr Bytes kSmallest = 1_KiB;
  constexpr Bytes kLargest = 64_GiB;
  std::vector<SizeCorrection> corrections;
  for (Bytes bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
    const CollectiveCall call{.kind = kind, .bytes = bytes};
    const Seconds predicted = collective_cost(topology, call, ranks, tuning).solo_time;
    corrections.push_back({bytes, std::max(predicted, least) / predicted});
  }
  return corrections;
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
  const MeasuredTimes times = measured_times(cluster);
  fabric.per_rank = host_time_per_rank(times, now.time, cluster.gpu_count());
  const Seconds wanted = time_of_links(times, fabric.per_rank);
  if (wanted <= now.time) return fabric;
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

std::vector<GroupCalibration> calibrations_of(const MeasuredFabric& fabric,
                                              const CollectiveTuning& tuning) {
  std::vector<GroupCalibration> groups;
  if (fabric.per_rank.value() <= 0) return groups;
  const ClusterSpec& cluster = fabric.cluster;
  const Topology topology(cluster);
  for (int ranks = 2; ranks <= cluster.gpu_count(); ++ranks) {
    if (cluster.gpu_count() % ranks != 0) continue;
    for (int nodes = 1; nodes <= std::min(ranks, cluster.node_count); ++nodes) {
      if (ranks % nodes != 0 || ranks / nodes > cluster.node.gpu_count) continue;
      const std::vector<int> places = spread_over(cluster, ranks, nodes);
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
        groups.push_back({.collective = kind,
                          .ranks = ranks,
                          .nodes = nodes,
                          .corrections = corrections_to(fabric.per_rank * ranks, topology, kind,
                                                        places, tuning)});
    }
  }
  return groups;
}

std::string note_on_measured_fabric(const MeasuredFabric& fabric) {
  const BytesPerSecond measured = fabric.cluster.measured_all_reduce;
  const std::string both = "an all-reduce over all GPUs was measured at " + to_text(measured) +
                           ", the cluster as described promises " + to_text(fabric.promised);
  const auto percent = static_cast<int>(std::lround(100 * fabric.nic_share));
  const std::string nics = "NICs are simulated at " + std::to_string(percent) + " % of their rate";
  if (fabric.per_rank.value() > 0)
    return both + ": every collective takes the host " + to_text(fabric.per_rank) +
           " for each of its ranks (approximate), messages find NICs as described";
  if (fabric.nic_share >= 1) return both + ": it is simulated as described";
  return both + ": its " + nics;
}

}  // namespace tessera
