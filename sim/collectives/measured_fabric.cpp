#include "sim/collectives/measured_fabric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "hw/fabric/fabric_measurements.h"
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

std::vector<int> all_ranks(const ClusterSpec& cluster) {
  std::vector<int> ranks(static_cast<std::size_t>(cluster.gpu_count()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Seconds all_gather_over(const ClusterSpec& cluster, const CollectiveTuning& tuning) {
  const CollectiveCall call{.kind = CollectiveKind::all_gather, .bytes = kMeasured.bytes};
  return collective_cost(Topology(cluster), call, all_ranks(cluster), tuning).solo_time;
}

AllReduce all_reduce_over(const ClusterSpec& cluster, const CollectiveTuning& tuning) {
  const CollectiveCost cost =
      collective_cost(Topology(cluster), kMeasured, all_ranks(cluster), tuning);
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
/// Of a call of `kMeasured`, whatever its ranks: where the line through the medians of nanotron's
/// all-gathers behind slow hosts on 16, 32 and 64 GPUs (6.2, 10.6, 19.9 ms) begins; those on 128
/// and 256 are within a tenth of it.
constexpr Seconds kOfTheCall(1.5e-3);
/// Benchmarks of one machine differ by less.
constexpr double kClearlySlower = 1.2;
/// Beyond NCCL's, of a benchmark that gathers into a list and copies out of it: nanotron's
/// all-gather takes 3.57 ms inside a node (median of 42 jobs), of which 2.74 are simulated.
constexpr Seconds kOfLists(0.83e-3);
/// Of the promised bus bandwidth, where a slow host hides what links reach: the median of the 203
/// jobs of nanotron on 32 to 512 GPUs (huggingface/nanotron, December 2024) whose hosts were not
/// slow, by their own benchmark of 1 GiB (a tenth of them below 0.47, a tenth above 0.60).
constexpr double kShareBehindASlowHost = 0.53;

std::span<const CollectiveKind> slowed_kinds(const MeasuredFabric& fabric) {
  static constexpr std::array kKinds = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                        CollectiveKind::reduce_scatter};
  return std::span(kKinds).first(fabric.all_reduces_alone ? 1 : kKinds.size());
}

/// Of the measured calls; 0: not measured.
struct MeasuredTimes {
  Seconds all_reduce, all_gather;
};

MeasuredTimes measured_times(const FabricMeasurement& measured, int gpus) {
  const double bytes = bus_bytes(gpus);
  const BytesPerSecond gather = measured.all_gather;
  return {Seconds(bytes / measured.all_reduce.value()),
          Seconds(gather.value() > 0 ? bytes / 2 / gather.value() : 0)};
}

/// 0: links are all that is slow.
Seconds host_time_per_rank(const MeasuredTimes& measured, Seconds promised, int ranks) {
  const bool gathers = measured.all_gather.value() > 0;
  const Seconds call = gathers ? measured.all_gather : measured.all_reduce;
  const Seconds each = std::max(call - kOfTheCall, Seconds(0)) / ranks;
  const double slower = measured.all_reduce / promised;
  const bool seen =
      gathers ? slower > kClearlySlower && each >= kLeastPerRank : slower > 1 / kLeastOfNics;
  return seen && each <= kMostPerRank ? each : Seconds(0);
}

/// What links take of a measured all-reduce: no more than twice an all-gather, which moves half the
/// bytes. A host that is slow hides them.
Seconds time_of_links(const MeasuredTimes& measured, Seconds promised, Seconds per_rank) {
  if (per_rank.value() > 0) return std::min(measured.all_reduce, promised / kShareBehindASlowHost);
  const bool gathers = measured.all_gather.value() > 0;
  return gathers ? std::min(measured.all_reduce, 2 * measured.all_gather) : measured.all_reduce;
}

/// Whether rings reach what `cluster` promises, so that its links do.
bool gathers_as_described(const MeasuredTimes& measured, const ClusterSpec& cluster,
                          const CollectiveTuning& tuning) {
  if (measured.all_gather.value() <= 0) return false;
  return measured.all_gather <= all_gather_over(cluster, tuning) * kClearlySlower + kOfLists;
}

/// As many ranks on each of the first `nodes` nodes.
std::vector<int> spread_over(const ClusterSpec& cluster, int ranks, int nodes) {
  std::vector<int> places;
  for (int node = 0; node < nodes; ++node)
    for (int i = 0; i < ranks / nodes; ++i) places.push_back(node * cluster.node.gpu_count + i);
  return places;
}

/// Measured over predicted for sizes in steps of four, by `factor_at(bytes)`.
template <typename FactorAt>
std::vector<SizeCorrection> corrections_by(const FactorAt& factor_at) {
  constexpr Bytes kSmallest = 1_KiB;
  constexpr Bytes kLargest = 64_GiB;
  std::vector<SizeCorrection> corrections;
  for (Bytes bytes = kSmallest; bytes <= kLargest; bytes *= 4)
    corrections.push_back({bytes, factor_at(bytes)});
  return corrections;
}

/// What all-reduces over all GPUs of `slow` take against those of `described`.
std::vector<SizeCorrection> corrections_between(const ClusterSpec& described,
                                                const ClusterSpec& slow,
                                                const CollectiveTuning& tuning) {
  const std::vector<int> ranks = all_ranks(described);
  const Topology of_described(described);
  const Topology of_slow(slow);
  return corrections_by([&](Bytes bytes) {
    const CollectiveCall call{.kind = CollectiveKind::all_reduce, .bytes = bytes};
    return collective_cost(of_slow, call, ranks, tuning).solo_time /
           collective_cost(of_described, call, ranks, tuning).solo_time;
  });
}

/// Of calls of `kind` by the GPUs `places` on `nodes` nodes.
GroupCalibration one_after_the_other(const MeasuredFabric& fabric, CollectiveKind kind,
                                     const Topology& topology, const std::vector<int>& places,
                                     int nodes, const CollectiveTuning& tuning) {
  const auto ranks = static_cast<int>(places.size());
  const auto factor_at = [&](Bytes bytes) {
    const CollectiveCall call{.kind = kind, .bytes = bytes};
    const Seconds described = collective_cost(topology, call, places, tuning).solo_time;
    const double slower = nodes > 1 ? correction_at(fabric.collectives, bytes) : 1;
    return std::max(slower, fabric.per_rank * ranks / described);
  };
  return {
      .collective = kind, .ranks = ranks, .nodes = nodes, .corrections = corrections_by(factor_at)};
}

/// Share of the NICs' rate at which the all-reduce takes `wanted`; `now` is that of `cluster`.
/// Transfers take a time in proportion to 1 / share, but for the algorithm that NCCL chooses: a few
/// steps come within a thousandth.
double nic_share_for(Seconds wanted, AllReduce now, ClusterSpec cluster,
                     const CollectiveTuning& tuning) {
  constexpr int kSteps = 12;
  constexpr double kClose = 1e-3;
  const double described = cluster.node.nic_efficiency;
  double share = 1;
  for (int i = 0; i < kSteps && std::abs(now.time / wanted - 1) > kClose; ++i) {
    const bool by_latency = wanted <= now.latency;
    share *= by_latency ? now.time / wanted : (now.time - now.latency) / (wanted - now.latency);
    share = std::min(share, 1.0);
    cluster.node.nic_efficiency = described * share;
    now = all_reduce_over(cluster, tuning);
  }
  return share;
}

}  // namespace

MeasuredFabric measured_fabric(const ClusterSpec& cluster, const CollectiveTuning& tuning) {
  MeasuredFabric fabric{.cluster = cluster, .promised = {}};
  const FabricMeasurement measured = measurement_of(cluster);
  if (measured.all_reduce.value() <= 0) return fabric;
  const AllReduce now = all_reduce_over(cluster, tuning);
  fabric.promised = now.bus;
  if (now.bus <= measured.all_reduce) return fabric;
  const MeasuredTimes times = measured_times(measured, cluster.gpu_count());
  fabric.per_rank = host_time_per_rank(times, now.time, cluster.gpu_count());
  fabric.all_reduces_alone =
      fabric.per_rank.value() <= 0 && gathers_as_described(times, cluster, tuning);
  const Seconds wanted =
      fabric.all_reduces_alone ? times.all_reduce : time_of_links(times, now.time, fabric.per_rank);
  if (wanted <= now.time) return fabric;
  const double share = nic_share_for(wanted, now, cluster, tuning);
  ClusterSpec slow = cluster;
  slow.node.nic_efficiency = cluster.node.nic_efficiency * share;
  if (fabric.per_rank.value() > 0 || fabric.all_reduces_alone) {
    fabric.collectives = corrections_between(cluster, slow, tuning);
    return fabric;
  }
  fabric.nic_share = share;
  fabric.cluster = std::move(slow);
  return fabric;
}

std::vector<GroupCalibration> slower_collectives(const MeasuredFabric& fabric, int ranks,
                                                 int nodes) {
  std::vector<GroupCalibration> groups;
  if (fabric.collectives.empty() || nodes < 2) return groups;
  for (const CollectiveKind kind : slowed_kinds(fabric))
    groups.push_back(
        {.collective = kind, .ranks = ranks, .nodes = nodes, .corrections = fabric.collectives});
  return groups;
}

std::vector<GroupCalibration> calibrations_of(const MeasuredFabric& fabric,
                                              const CollectiveTuning& tuning) {
  std::vector<GroupCalibration> groups;
  if (fabric.per_rank.value() <= 0 && fabric.collectives.empty()) return groups;
  const ClusterSpec& cluster = fabric.cluster;
  const Topology topology(cluster);
  for (int ranks = 2; ranks <= cluster.gpu_count(); ++ranks) {
    if (cluster.gpu_count() % ranks != 0) continue;
    for (int nodes = 1; nodes <= std::min(ranks, cluster.node_count); ++nodes) {
      if (ranks % nodes != 0 || ranks / nodes > cluster.node.gpu_count) continue;
      const std::vector<int> places = spread_over(cluster, ranks, nodes);
      for (const CollectiveKind kind : slowed_kinds(fabric))
        groups.push_back(one_after_the_other(fabric, kind, topology, places, nodes, tuning));
    }
  }
  return groups;
}

namespace {

/// A simulated rate has more digits than it is good for.
std::string in_gigabytes(BytesPerSecond rate) {
  return std::to_string(std::lround(rate.value() / 1e9)) + " GB/s";
}

std::string measured_text(const ClusterSpec& cluster, BytesPerSecond rate) {
  if (is_between_measurements(cluster))
    return "an all-reduce over all GPUs reaches " + in_gigabytes(rate) +
           " by what was measured on fewer and on more nodes (approximate)";
  return "an all-reduce over all GPUs was measured at " + to_text(rate);
}

}  // namespace

std::string note_on_measured_fabric(const MeasuredFabric& fabric) {
  const ClusterSpec& cluster = fabric.cluster;
  const bool measured_here =
      cluster.measured_all_reduce.value() > 0 || !cluster.measured_fabric.empty();
  if (cluster.node_count == 1 && measured_here)
    return "what was measured of the fabric is of links between nodes: one node is simulated as "
           "described";
  if (fabric.promised.value() <= 0) return {};
  const BytesPerSecond measured = measurement_of(cluster).all_reduce;
  const std::string both = measured_text(cluster, measured) +
                           ", the cluster as described promises " + in_gigabytes(fabric.promised);
  const auto percent = static_cast<int>(std::lround(100 * fabric.nic_share));
  const std::string nics = "NICs are simulated at " + std::to_string(percent) + " % of their rate";
  const double left = std::max(kShareBehindASlowHost, measured / fabric.promised);
  if (fabric.per_rank.value() > 0)
    return both + ": every collective takes the host " + to_short_text(fabric.per_rank) +
           " for each of its ranks (approximate), messages find NICs as described, sums and "
           "gathers between nodes " +
           std::to_string(std::lround(100 * left)) +
           " % of what is promised (approximate: the host hides it)";
  if (fabric.all_reduces_alone)
    return both +
           ": all-reduces are simulated as slow as that, all-gathers were measured as "
           "described, and links are";
  if (fabric.nic_share >= 1) return both + ": it is simulated as described";
  return both + ": its " + nics;
}

}  // namespace tessera
