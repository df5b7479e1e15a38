#include "sim/engine/communication_plan.h"

#include <algorithm>
#include <limits>

#include "sim/collectives/collective_tuning.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/ring_paths.h"

namespace tessera {
namespace {

/// The distinct transfers of a stage: a step repeats few of them thousands of times.
struct StageTransfers {
  std::vector<ProgramOp> distinct;    ///< the first op of each
  std::vector<std::int32_t> numbers;  ///< by op: position in `distinct`; -1: starts none
};

StageTransfers transfers_of(const RankProgram& stage) {
  std::map<std::tuple<OpKind, GroupKind, int, std::int64_t, StreamKind>, std::int32_t> known;
  StageTransfers transfers;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::all_reduce && op.kind != OpKind::send) {
      transfers.numbers.push_back(-1);
      continue;
    }
    const auto next = static_cast<std::int32_t>(transfers.distinct.size());
    const auto [entry, is_new] =
        known.try_emplace({op.kind, op.group, op.peer_stage, op.bytes.value(), op.stream}, next);
    if (is_new) transfers.distinct.push_back(op);
    transfers.numbers.push_back(entry->second);
  }
  return transfers;
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
  for (int stage = 0; stage < timed.program.layout.pipeline; ++stage) plan_stage(timed, stage);
  for (PlannedTransfer& planned : transfers_) {
    use_closed_form_on_private_links(timed.topology, planned.transfer);
  }
  fold(timed);
  count_simulated_members();
}

// Ranks ascend with the stages.
void CommunicationPlan::plan_stage(const TimedProgram& timed, int stage) {
  const ParallelLayout& layout = timed.program.layout;
  StageTransfers stage_transfers =
      transfers_of(timed.program.stages[static_cast<std::size_t>(stage)]);
  const int first_rank = rank_of({0, stage, 0}, layout);
  for (int rank = first_rank; rank < first_rank + layout.tensor * layout.data; ++rank) {
    first_of_rank_.push_back(of_rank_.size());
    for (const ProgramOp& op : stage_transfers.distinct) {
      of_rank_.push_back(op.kind == OpKind::send ? plan_message(timed, op, rank)
                                                 : plan_collective(timed, op, rank));
    }
  }
  numbers_.push_back(std::move(stage_transfers.numbers));
}

std::size_t CommunicationPlan::plan_collective(const TimedProgram& timed, const ProgramOp& op,
                                               int rank) {
  const int communicator = communicators_.index_of(rank, op.group);
  const auto [entry, is_new] =
      collectives_.try_emplace({communicator, op.bytes.value()}, transfers_.size());
  if (is_new) {
    const CollectiveSettings& settings = timed.collectives;
    const CollectiveCost cost = collective_cost(
        timed.topology, settings.call_of(op.group, CollectiveKind::all_reduce, op.bytes),
        communicators_[communicator].ranks, settings.tuning());
    const std::vector<int>& ranks = communicators_[communicator].ranks;
    const bool rings = cost.algorithm == CollectiveAlgorithm::ring && ranks.size() > 1 &&
                       ranks.size() <= kMostChunkedRanks && !cost.links.empty();
    Transfer transfer;
    if (settings.fidelity == NetworkFidelity::analytic) {
      transfer = {.delay = cost.solo_time, .bytes = 0, .path = {}};
    } else if (settings.fidelity == NetworkFidelity::chunk && rings) {
      transfer = make_chunks(timed, cost, op.bytes, ranks);
    } else {
      transfer = make_transfer(cost.latency, cost.bytes_per_link, cost.links);
    }
    if (settings.slows_kernels) transfer.load = load_of(cost, timed.topology.cluster().node.gpu);
    transfers_.push_back({.transfer = std::move(transfer),
                          .kind = op.kind,
                          .group = op.group,
                          .bytes = op.bytes,
                          .communicator = communicator});
  }
  const Transfer& transfer = transfers_[entry->second].transfer;
  const LinkUser user{op.kind, communicator, op.stream};
  for (const ChunkRing& ring : transfer.rings) {
    for (const PathId hop : ring.hops)
      users_.add(paths_[static_cast<std::size_t>(hop.index())], user);
  }
  if (transfer.path.valid()) {
    users_.add(paths_[static_cast<std::size_t>(transfer.path.index())], user);
  }
  return entry->second;
}

std::size_t CommunicationPlan::plan_message(const TimedProgram& timed, const ProgramOp& op,
                                            int rank) {
  RankPosition peer = position_of(rank, timed.program.layout);
  peer.pipeline = op.peer_stage;
  const int to = rank_of(peer, timed.program.layout);
  const Route route = timed.topology.route(rank, to);
  const auto bytes = static_cast<double>(op.bytes.value());
  const auto [entry, is_new] =
      messages_.try_emplace({rank, to, op.bytes.value()}, transfers_.size());
  if (is_new) {
    transfers_.push_back({.transfer = make_transfer(route.latency, bytes, route.links),
                          .kind = op.kind,
                          .bytes = op.bytes,
                          .from = rank,
                          .to = to});
  }
  users_.add(route.links, {op.kind, rank, op.stream});
  return entry->second;
}

Transfer CommunicationPlan::make_transfer(Seconds latency, double bytes,
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

void CommunicationPlan::fold(const TimedProgram& timed) {
  path_of_links_.clear();
  if (timed.simulation.fold.any()) {
    FoldedJob job = fold_job(timed, communicators_, transfers_, paths_);
    folding_ = std::move(job.folding);
    network_ = std::move(job.network);
  } else {
    folding_ = unfolded(timed.program.layout.world_size());
    network_ = without_unused_links(timed.topology, std::move(paths_));
  }
  paths_.clear();
}

// A folded communicator is met at the first of its class, by every rank whose own it stands for.
void CommunicationPlan::count_simulated_members() {
  simulated_members_.assign(communicators_.all().size(), 0);
  for (const int rank : folding_.simulated) {
    for (const int own : communicators_.of(rank)) {
      if (own >= 0) ++simulated_members_[static_cast<std::size_t>(folding_.communicator_of(own))];
    }
  }
}

}  // namespace tessera
