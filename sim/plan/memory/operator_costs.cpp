#include "sim/plan/memory/operator_costs.h"

#include <algorithm>
#include <optional>

#include "sim/collectives/collective.h"
#include "sim/collectives/rings/ring_shift.h"
#include "sim/plan/time_segments.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

/// Of the group of rank 0.
std::vector<int> ranks_with_first(GroupKind group, const ParallelLayout& layout) {
  std::vector<int> ranks;
  for (int rank = 0; rank < layout.world_size(); ++rank)
    if (group_key(rank, group, layout) == group_key(0, group, layout)) ranks.push_back(rank);
  return ranks;
}

/// Of `cost.links`, one between a GPU of the group and the host's side of its node, over which its
/// NIC is reached too.
std::optional<LinkId> host_port_of(const CollectiveCost& cost, const std::vector<int>& gpus,
                                   const Topology& topology) {
  for (const int gpu : gpus) {
    const std::vector<LinkId> down = topology.device_to_host(gpu).links;
    const std::vector<LinkId> up = topology.host_to_device(gpu).links;
    if (down.empty() || up.empty()) continue;
    for (const LinkId port : {down.front(), up.back()})
      if (std::ranges::find(cost.links, port) != cost.links.end()) return port;
  }
  return std::nullopt;
}

/// As the engine has it, a collective moves at one rate over all of its links.
OpCost over_host_port(const CollectiveCost& cost, const std::vector<int>& gpus,
                      const Topology& topology) {
  OpCost result{.time = cost.solo_time};
  const Seconds moving = cost.solo_time - cost.latency;
  const std::optional<LinkId> port = host_port_of(cost, gpus, topology);
  if (!port || moving <= Seconds(0)) return result;
  result.moving = moving;
  result.rate = BytesPerSecond(cost.bytes_per_link / moving.value());
  result.limit = topology.link(*port).bandwidth;
  return result;
}

}  // namespace

OpCost OperatorCosts::of(const GraphOp& op) {
  if (op.kind == GraphOpKind::collective) return collective(op);
  if (op.kind != GraphOpKind::kernel) return {};
  const auto [entry, is_new] = kernels_.try_emplace(op.kernel);
  if (is_new) entry->second = predictor_.predict(op.kernel).duration;
  return {.time = entry->second, .product = loses_multiprocessors(op.kernel.kind)};
}

const OpCost& OperatorCosts::collective(const GraphOp& op) {
  const auto [entry, is_new] =
      collectives_.try_emplace({op.group, op.collective, op.bytes.value()});
  if (is_new) entry->second = collective_alone(op);
  return entry->second;
}

OpCost OperatorCosts::collective_alone(const GraphOp& op) {
  const CollectiveSettings& settings = timed_.collectives;
  const CollectiveCall call =
      settings.call_of(op.group, collective_kind_of(op.collective), op.bytes);
  const std::vector<int>& gpus = gpus_of(op.group);
  const CollectiveCost cost =
      op.collective == OpKind::ring_shift
          ? ring_shift_cost(timed_.topology, call.bytes, gpus, settings.tuning(), call.copy_engines)
          : collective_cost(timed_.topology, call, gpus, settings.tuning());
  const bool shares_links = settings.fidelity != NetworkFidelity::analytic;
  OpCost result =
      shares_links ? over_host_port(cost, gpus, timed_.topology) : OpCost{.time = cost.solo_time};
  if (settings.slows_kernels) result.load = load_of(cost, timed_.topology.cluster().node.gpu);
  return result;
}

const std::vector<int>& OperatorCosts::gpus_of(GroupKind group) {
  std::vector<int>& gpus = gpus_[group];
  if (gpus.empty()) gpus = timed_.program.gpus_of(ranks_with_first(group, timed_.program.layout));
  return gpus;
}

}  // namespace tessera
