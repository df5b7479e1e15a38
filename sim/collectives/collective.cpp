#include "sim/collectives/collective.h"

#include <algorithm>
#include <cassert>

#include "hw/units/input_error.h"
#include "sim/collectives/collective_plan.h"
#include "sim/collectives/link_loads.h"
#include "sim/collectives/token_exchange.h"

namespace tessera {
namespace {

using Algorithm = CollectiveAlgorithm;

/// Reads and writes of the device memory per byte that crosses a GPU's links: a ring's pieces are
/// written by the neighbour, read beside the own data and sent on or written to the result; sends
/// and NVLS read once and write once.
constexpr double kMemoryPerWireByteRing = 3;
constexpr double kMemoryPerWireByte = 2;

/// The link that is busy longest, and for how long.
struct Bottleneck {
  LinkId link;
  Seconds busy;
};

Bottleneck bottleneck_of(const Topology& topology, const std::vector<LinkLoad>& loads) {
  Bottleneck worst;
  for (const LinkLoad& load : loads) {
    const Seconds busy(load.bytes / topology.link(load.link).bandwidth.value());
    if (!worst.link.valid() || busy > worst.busy) worst = {load.link, busy};
  }
  return worst;
}

BytesPerSecond slowest_of(const Topology& topology, const std::vector<LinkLoad>& loads) {
  BytesPerSecond slowest = topology.link(loads.front().link).bandwidth;
  for (const LinkLoad& load : loads) {
    slowest = std::min(slowest, topology.link(load.link).bandwidth);
  }
  return slowest;
}

/// Bytes that one GPU sends.
double wire_bytes(const CollectiveCall& call, Algorithm algorithm, int ranks) {
  const auto bytes = static_cast<double>(call.bytes.value());
  if (call.kind == CollectiveKind::send_recv) return bytes;
  if (call.kind == CollectiveKind::all_to_all) return bytes * (ranks - 1) / ranks;
  if (algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree)
    return bytes * (1 + 1.0 / ranks);
  if (algorithm == Algorithm::tree) return 2 * bytes;
  return bytes * ring_steps(call.kind, ranks) / ranks;
}

bool runs_on_copy_engines(const RingShape& shape, const CollectiveCall& call) {
  const bool reduces =
      call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::reduce_scatter;
  return call.copy_engines && !reduces && shape.nodes == 1;
}

GpuUse gpu_use(const RingShape& shape, const CollectiveCall& call, const NcclExpectation& choice) {
  GpuUse use;
  if (runs_on_copy_engines(shape, call)) {
    use.memory_bytes = wire_bytes(call, choice.algorithm, shape.ranks) * kMemoryPerWireByte;
    return use;
  }
  use.channels = nccl_channels(shape, choice.algorithm, choice.protocol, call.bytes);
  use.multiprocessors = use.channels;  // one thread block each, alone on its multiprocessor
  const bool by_pieces = choice.algorithm == Algorithm::ring ||
                         choice.algorithm == Algorithm::tree ||
                         choice.algorithm == Algorithm::hierarchical;
  use.memory_bytes = wire_bytes(call, choice.algorithm, shape.ranks) *
                     (by_pieces ? kMemoryPerWireByteRing : kMemoryPerWireByte);
  return use;
}

/// Fills in what follows from the parts of the time. Nothing is faster than the limiting link.
void set_times(const Topology& topology, const TimeParts& parts, CollectiveCost& cost) {
  const Bottleneck worst = bottleneck_of(topology, cost.loads);
  const BytesPerSecond slowest = slowest_of(topology, cost.loads);
  const Seconds transfer = std::max(parts.transfer, worst.busy);
  cost.bottleneck = worst.link;
  cost.lower_bound = worst.busy;
  cost.latency = parts.latency + parts.fill;
  cost.bytes_per_link = transfer.value() * slowest.value();
  cost.protocol_share = worst.busy / transfer;
  cost.solo_time = cost.latency + Seconds(cost.bytes_per_link / slowest.value());
  for (const LinkLoad& load : cost.loads) cost.links.push_back(load.link);
}

CollectivePlan plan_over(const Topology& topology, const RingPaths& paths,
                         const CollectiveCall& call, std::span<const int> ranks,
                         std::vector<std::vector<LinkLoad>>& loads) {
  CollectivePlan plan{call, paths.shape, {}};
  for (const NcclExpectation& candidate : nccl_candidates(paths.shape, call)) {
    // All protocols of an algorithm load the links alike.
    const auto same = std::ranges::find(plan.ways, candidate.algorithm,
                                        [](const auto& way) { return way.choice.algorithm; });
    if (same != plan.ways.end()) {
      const Seconds on_links = same->on_links;
      loads.push_back(std::vector(loads[static_cast<std::size_t>(same - plan.ways.begin())]));
      plan.ways.push_back({candidate, on_links});
      continue;
    }
    loads.push_back(link_loads(topology, paths, candidate.algorithm, call, ranks));
    plan.ways.push_back({candidate, bottleneck_of(topology, loads.back()).busy});
  }
  return plan;
}

CollectiveCost cost_of(const Topology& topology, const CollectivePlan& plan,
                       std::vector<std::vector<LinkLoad>> loads, const CollectiveTuning& tuning) {
  TimedWay timed = time_parts(plan, tuning.constants());
  const NcclExpectation& choice = plan.ways[timed.way].choice;
  CollectiveCost cost;
  cost.algorithm = choice.algorithm;
  cost.protocol = choice.protocol;
  cost.loads = std::move(loads[timed.way]);
  apply_calibration(tuning.find(plan.call, plan.shape.ranks, plan.shape.nodes), plan.call, choice,
                    timed.parts);
  set_times(topology, timed.parts, cost);
  cost.gpu = gpu_use(plan.shape, plan.call, choice);
  return cost;
}

}  // namespace

void apply_calibration(const GroupCalibration* group, const CollectiveCall& call,
                       const NcclExpectation& choice, TimeParts& parts) {
  if (group == nullptr) return;
  for (const ProtocolCalibration& way : group->protocols) {
    if (way.algorithm != choice.algorithm || way.protocol != choice.protocol) continue;
    parts.latency *= way.latency_factor;
    parts.transfer *= way.transfer_factor;
    parts.fill *= way.fill_factor;
  }
  const double factor = correction_at(group->corrections, call.bytes);
  parts.latency *= factor;
  parts.transfer *= factor;
  parts.fill *= factor;
}

CollectivePlan plan_collective(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks) {
  std::vector<std::vector<LinkLoad>> loads;
  return plan_over(topology, ring_paths(topology, ranks), call, ranks, loads);
}

TimedWay time_parts(const CollectivePlan& plan, const CollectiveConstants& constants) {
  TimedWay fastest;
  for (std::size_t way = 0; way < plan.ways.size(); ++way) {
    const auto& [choice, on_links] = plan.ways[way];
    TimedWay timed{way, effective_time(plan.shape, plan.call, choice, on_links, constants)};
    timed.parts.transfer = std::max(timed.parts.transfer, on_links);
    if (way == 0 || timed.time() < fastest.time()) fastest = timed;
  }
  return fastest;
}

Seconds time_alone(const CollectivePlan& plan, const CollectiveTuning& tuning) {
  TimedWay timed = time_parts(plan, tuning.constants());
  const CollectiveWay& way = plan.ways[timed.way];
  apply_calibration(tuning.find(plan.call, plan.shape.ranks, plan.shape.nodes), plan.call,
                    way.choice, timed.parts);
  timed.parts.transfer = std::max(timed.parts.transfer, way.on_links);
  return timed.time();
}

CollectiveCost collective_cost(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks, const CollectiveTuning& tuning) {
  if (ranks.size() < 2 || call.bytes.value() == 0) return {};
  if (call.tokens.experts > 0) return token_exchange_cost(topology, call, ranks, tuning);
  std::vector<std::vector<LinkLoad>> loads;
  const CollectivePlan plan = plan_over(topology, ring_paths(topology, ranks), call, ranks, loads);
  return cost_of(topology, plan, std::move(loads), tuning);
}

CollectiveCost collective_cost(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks) {
  return collective_cost(topology, call, ranks, CollectiveTuning());
}

CollectiveCost collective_cost(const Topology& topology, CollectiveKind kind, Bytes bytes,
                               std::span<const int> ranks) {
  return collective_cost(topology, CollectiveCall{.kind = kind, .bytes = bytes}, ranks);
}

CollectiveCost all_to_all_cost(const Topology& topology, std::span<const Bytes> sent,
                               std::span<const int> ranks, const CollectiveTuning& tuning,
                               bool copy_engines) {
  const std::size_t n = ranks.size();
  assert(sent.size() == n * n);
  LinkBytes loads;
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double own = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const auto bytes = static_cast<double>(sent[i * n + j].value());
      own += bytes;
      if (i != j && bytes > 0) loads.add(topology.route(ranks[i], ranks[j]), bytes);
    }
    most = std::max(most, own);
  }
  std::vector<LinkLoad> list = loads.list();
  if (list.empty()) return {};
  // Protocol and latency are those of the rank that sends most.
  const CollectiveCall call{.kind = CollectiveKind::all_to_all,
                            .bytes = Bytes(static_cast<std::int64_t>(most)),
                            .copy_engines = copy_engines};
  const RingPaths paths = ring_paths(topology, ranks);
  const Seconds busy = bottleneck_of(topology, list).busy;
  const CollectivePlan plan{call, paths.shape, {{nccl_choice(paths.shape, call), busy}}};
  return cost_of(topology, plan, {std::move(list)}, tuning);
}

}  // namespace tessera
