#include "sim/engine/communication_plan.h"

#include <algorithm>
#include <limits>

#include "sim/collectives/collective_tuning.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/ring_paths.h"

namespace tessera {
namespace {

// One op per distinct transfer of a stage: a step repeats few of them thousands of times.
std::vector<ProgramOp> distinct_transfers(const RankProgram& stage) {
  std::map<std::tuple<OpKind, GroupKind, int, std::int64_t, StreamKind>, ProgramOp> distinct;
  for (const ProgramOp& op : stage.ops) {
    if (!is_collective(op.kind) && op.kind != OpKind::send) continue;
    distinct.try_emplace({op.kind, op.group, op.peer_stage, op.bytes.value(), op.stream}, op);
  }
  std::vector<ProgramOp> ops;
  for (const auto& [key, op] : distinct) ops.push_back(op);
  return ops;
}

/// Larger groups would take a message per rank, ring and step: thousands of thousands.
constexpr std::size_t kMostChunkedRanks = 64;

Seconds time_alone(const Topology& topology, double bytes, std::span<const LinkId> links) {
  BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
  for (const LinkId id : links) slowest = std::min(slowest, topology.link(id).bandwidth);
  return Seconds(bytes / slowest.value());
}

DeviceLoad load_of(const CollectiveCost& cost, const GpuSpec& gpu) {
  if (gpu.sm_count <= 0 || cost.solo_time.value() <= 0) return {};
  const double traffic = cost.gpu.memory_bytes / cost.solo_time.value();
  return {
      .multiprocessors = static_cast<double>(cost.gpu.multiprocessors) / gpu.sm_count,
      .bandwidth = gpu.memory_bandwidth.value() > 0 ? traffic / gpu.memory_bandwidth.value() : 0};
}

}  // namespace

CommunicationPlan::CommunicationPlan(const TimedProgram& timed)
    : communicators_(timed.program.layout), users_(timed.topology.links().size()) {
  const ParallelLayout& layout = timed.program.layout;
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    const int first_rank = rank_of({0, stage, 0}, layout);
    const int ranks_per_stage = layout.tensor * layout.data;
    const RankProgram& program = timed.program.stages[static_cast<std::size_t>(stage)];
    for (const ProgramOp& op : distinct_transfers(program)) {
      for (int rank = first_rank; rank < first_rank + ranks_per_stage; ++rank) {
        if (op.kind == OpKind::send) plan_message(timed, op, rank);
        if (is_collective(op.kind)) plan_collective(timed, op, rank);
      }
    }
  }
  for (auto& [key, transfer] : collectives_) {
    use_closed_form_on_private_links(timed.topology, transfer);
  }
  for (auto& [key, transfer] : messages_) {
    use_closed_form_on_private_links(timed.topology, transfer);
  }
}

void CommunicationPlan::plan_collective(const TimedProgram& timed, const ProgramOp& op, int rank) {
  const int communicator = communicators_.index_of(rank, op.group);
  const auto [entry, is_new] = collectives_.try_emplace({communicator, op.kind, op.bytes.value()});
  if (is_new) {
    const CollectiveCall call =
        timed.collectives.call_of(op.group, collective_kind_of(op.kind), op.bytes);
    const std::vector<int>& ranks = communicators_[communicator].ranks;
    const CollectiveCost cost =
        collective_cost(timed.topology, call, ranks, timed.collectives.tuning());
    entry->second = make_transfer(timed, cost, call, ranks);
  }
  // Of any kind: collectives of one communicator on one stream never overlap.
  add_users(entry->second, {OpKind::all_reduce, communicator, op.stream});
}

void CommunicationPlan::plan_message(const TimedProgram& timed, const ProgramOp& op, int rank) {
  RankPosition peer = position_of(rank, timed.program.layout);
  peer.pipeline = op.peer_stage;
  const int to = rank_of(peer, timed.program.layout);
  const auto [entry, is_new] = messages_.try_emplace({rank, to, op.bytes.value()});
  if (is_new) {
    const CollectiveSettings& settings = timed.collectives;
    if (settings.nccl_messages) {
      const CollectiveCall call =
          settings.call_of(GroupKind::pipeline, CollectiveKind::send_recv, op.bytes);
      const std::vector<int> ranks = {rank, to};
      entry->second = make_transfer(
          timed, collective_cost(timed.topology, call, ranks, settings.tuning()), call, ranks);
    } else {
      const Route route = timed.topology.route(rank, to);
      entry->second = make_flow(route.latency, static_cast<double>(op.bytes.value()), route.links);
    }
  }
  add_users(entry->second, {op.kind, rank, op.stream});
}

void CommunicationPlan::add_users(const Transfer& transfer, const LinkUser& user) {
  const auto add = [&](PathId path) {
    users_.add(paths_[static_cast<std::size_t>(path.index())], user);
  };
  for (const ChunkRing& ring : transfer.rings) {
    for (const PathId hop : ring.hops) add(hop);
  }
  if (transfer.path.valid()) add(transfer.path);
}

Transfer CommunicationPlan::make_transfer(const TimedProgram& timed, const CollectiveCost& cost,
                                          const CollectiveCall& call,
                                          const std::vector<int>& ranks) {
  const CollectiveSettings& settings = timed.collectives;
  const bool rings = cost.algorithm == CollectiveAlgorithm::ring && !cost.links.empty() &&
                     call.kind == CollectiveKind::all_reduce && ranks.size() <= kMostChunkedRanks;
  Transfer transfer;
  if (settings.fidelity == NetworkFidelity::analytic) {
    transfer.delay = cost.solo_time;
  } else if (settings.fidelity == NetworkFidelity::chunk && rings) {
    transfer = make_chunks(timed, cost, call.bytes, ranks);
  } else {
    transfer = make_flow(cost.latency, cost.bytes_per_link, cost.links);
  }
  if (settings.slows_kernels) transfer.load = load_of(cost, timed.topology.cluster().node.gpu);
  return transfer;
}

Transfer CommunicationPlan::make_flow(Seconds latency, double bytes,
                                      const std::vector<LinkId>& links) {
  if (bytes <= 0 || links.empty()) return {.delay = latency, .bytes = 0, .path = {}};
  return {.delay = latency, .bytes = bytes, .path = path_over(links)};
}

PathId CommunicationPlan::path_over(const std::vector<LinkId>& links) {
  const PathId next(static_cast<int>(paths_.size()));
  const auto [entry, is_new] = path_of_links_.try_emplace(links, next);
  if (is_new) paths_.push_back(links);
  return entry->second;
}

Transfer CommunicationPlan::make_chunks(const TimedProgram& timed, const CollectiveCost& cost,
                                        Bytes bytes, const std::vector<int>& ranks) {
  const Topology& topology = timed.topology;
  Transfer transfer{.delay = cost.latency};
  const int count = static_cast<int>(ranks.size());
  transfer.steps = ring_steps(CollectiveKind::all_reduce, count);
  const double piece = static_cast<double>(bytes.value()) / count / cost.protocol_share;
  for (const DirectedRing& ring : directed_rings(topology, ring_paths(topology, ranks))) {
    ChunkRing chunks{.hops = {}, .bytes = piece * ring.share};
    for (std::size_t i = 0; i < ring.order.size(); ++i) {
      const Route hop = topology.route(ring.order[i], ring.order[(i + 1) % ring.order.size()]);
      chunks.hops.push_back(path_over(hop.links));
    }
    transfer.rings.push_back(std::move(chunks));
  }
  return transfer;
}

void CommunicationPlan::use_closed_form_on_private_links(const Topology& topology,
                                                         Transfer& transfer) const {
  if (!transfer.path.valid()) return;
  const std::vector<LinkId>& links = paths_[static_cast<std::size_t>(transfer.path.index())];
  if (users_.any_shared(links)) return;
  transfer.delay += time_alone(topology, transfer.bytes, links);
  transfer.path = {};
}

}  // namespace tessera
