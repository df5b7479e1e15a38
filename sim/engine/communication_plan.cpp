#include "sim/engine/communication_plan.h"

#include <algorithm>
#include <limits>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "sim/collectives/chunk_schedule.h"

namespace tessera {
namespace {

/// The distinct transfers of a stage: a step repeats few of them thousands of times.
struct StageTransfers {
  std::vector<ProgramOp> distinct;    ///< the first op of each
  std::vector<std::int32_t> numbers;  ///< by op: position in `distinct`; -1: starts none
};

StageTransfers transfers_of(const RankProgram& stage) {
  std::map<std::tuple<OpKind, GroupKind, int, int, std::int64_t, StreamKind>, std::int32_t> known;
  StageTransfers transfers;
  for (const ProgramOp& op : stage.ops) {
    if (!is_collective(op.kind) && !is_copy(op.kind) && op.kind != OpKind::send) {
      transfers.numbers.push_back(-1);
      continue;
    }
    const auto next = static_cast<std::int32_t>(transfers.distinct.size());
    const auto [entry, is_new] = known.try_emplace(
        {op.kind, op.group, op.listed_group, op.peer_stage, op.bytes.value(), op.stream}, next);
    if (is_new) transfers.distinct.push_back(op);
    transfers.numbers.push_back(entry->second);
  }
  return transfers;
}

/// Sizes of what the segments of `stage` allocate, ascending.
std::set<Bytes> sizes_of_tensors(const Program& program, int stage) {
  std::set<Bytes> sizes;
  for (const ProgramOp& op : program.stages[static_cast<std::size_t>(stage)].ops) {
    if (op.kind != OpKind::kernels) continue;
    for (const MemoryEvent& event : program.segment(op.segment).memory) sizes.insert(event.bytes);
  }
  return sizes;
}

/// Larger groups would take thousands of thousands of pieces.
constexpr std::size_t kMostChunkedRanks = 64;

BytesPerSecond slowest_of(const Topology& topology, std::span<const LinkId> links) {
  BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
  for (const LinkId id : links) slowest = std::min(slowest, topology.link(id).bandwidth);
  return slowest;
}

}  // namespace

CommunicationPlan::CommunicationPlan(const TimedProgram& timed)
    : costs_(timed),
      orbits_(timed),
      communicators_(timed.program),
      users_(timed.topology.links().size()),
      of_communicator_(communicators_.all().size()),
      of_sender_(static_cast<std::size_t>(timed.program.layout.world_size())) {
  plan_transfers(timed);
  for (PlannedTransfer& planned : transfers_) {
    use_closed_form_on_private_links(planned.transfer);
  }
  fold(timed);
  limit_paths_of_collectives();
  count_simulated_members();
}

void CommunicationPlan::plan_transfers(const TimedProgram& timed) {
  std::vector<std::vector<ProgramOp>> distinct;  // by stage
  for (const RankProgram& stage : timed.program.stages) {
    StageTransfers transfers = transfers_of(stage);
    numbers_.push_back(std::move(transfers.numbers));
    distinct.push_back(std::move(transfers.distinct));
    const auto first = static_cast<int>(distinct.back().size());
    std::ranges::move(plan_pressure_copies(timed, stage.stage, first),
                      std::back_inserter(distinct.back()));
  }
  first_of_rank_.resize(of_sender_.size());
  for (const int rank : orbits_.planned()) {
    const int stage = position_of(rank, timed.program.layout).pipeline;
    first_of_rank_[static_cast<std::size_t>(rank)] = of_rank_.size();
    for (const ProgramOp& op : distinct[static_cast<std::size_t>(stage)]) {
      of_rank_.push_back(plan_transfer(timed, op, rank));
    }
  }
}

/// A copy in each direction for every size that a tensor of the stage has.
std::vector<ProgramOp> CommunicationPlan::plan_pressure_copies(const TimedProgram& timed, int stage,
                                                               int first) {
  std::vector<ProgramOp> copies;
  auto& numbers = pressure_numbers_.emplace_back();
  if (timed.memory_limit.bytes <= Bytes(0) || !timed.memory_limit.swap) return copies;
  for (const Bytes bytes : sizes_of_tensors(timed.program, stage)) {
    for (const OpKind kind : {OpKind::copy_out, OpKind::copy_in}) {
      ProgramOp copy;
      copy.kind = kind;
      copy.bytes = bytes;  // on no stream of the program: it may run beside planned copies
      numbers[{kind, bytes}] = first + static_cast<std::int32_t>(copies.size());
      copies.push_back(copy);
    }
  }
  return copies;
}

const PlannedTransfer& CommunicationPlan::pressure_copy(int rank, int stage, OpKind kind,
                                                        Bytes bytes) const {
  const std::int32_t number =
      pressure_numbers_[static_cast<std::size_t>(stage)].at({kind, bytes});
  return transfers_[of_rank_[first_of_rank_[static_cast<std::size_t>(rank)] +
                             static_cast<std::size_t>(number)]];
}

std::uint32_t CommunicationPlan::add(PlannedTransfer planned, Positions& positions) {
  const auto position = static_cast<std::uint32_t>(transfers_.size());
  positions.push_back(position);
  transfers_.push_back(std::move(planned));
  return position;
}

std::uint32_t CommunicationPlan::plan_collective(const TimedProgram& timed, const ProgramOp& op,
                                                 int rank) {
  const int communicator = communicators_.index_of(rank, op);
  // Of any kind: collectives of one communicator on one stream never overlap.
  const LinkUser user{OpKind::all_reduce, communicator, op.stream};
  Positions& known = of_communicator_[static_cast<std::size_t>(communicator)];
  for (const std::uint32_t position : known) {
    const PlannedTransfer& planned = transfers_[position];
    if (planned.kind != op.kind || planned.bytes != op.bytes) continue;
    if (planned.first_stream != op.stream) add_users(planned.transfer, user);
    return position;
  }
  const std::vector<int>& ranks = communicators_[communicator].ranks;
  const CollectiveCall call =
      timed.collectives.call_of(op.group, collective_kind_of(op.kind), op.bytes);
  const TransferCost cost =
      costs_.of(call, timed.program.gpus_of(ranks), op.kind == OpKind::ring_shift);
  const std::uint32_t position = add({.transfer = make_transfer(timed, call, ranks, cost),
                                      .kind = op.kind,
                                      .group = op.group,
                                      .bytes = op.bytes,
                                      .first_stream = op.stream,
                                      .communicator = communicator},
                                     known);
  add_users(transfers_[position].transfer, user);
  return position;
}

std::uint32_t CommunicationPlan::plan_transfer(const TimedProgram& timed, const ProgramOp& op,
                                               int rank) {
  if (op.kind == OpKind::send) return plan_message(timed, op, rank);
  return is_copy(op.kind) ? plan_copy(timed, op, rank) : plan_collective(timed, op, rank);
}

std::uint32_t CommunicationPlan::plan_copy(const TimedProgram& timed, const ProgramOp& op,
                                           int rank) {
  Positions& known = of_sender_[static_cast<std::size_t>(rank)];
  for (const std::uint32_t position : known) {
    const PlannedTransfer& planned = transfers_[position];
    if (planned.kind != op.kind || planned.bytes != op.bytes) continue;
    if (planned.first_stream != op.stream)
      add_users(planned.transfer, {op.kind, rank, op.stream});
    return position;
  }
  const Topology& topology = timed.topology;
  const int gpu = timed.program.gpu_of(rank);
  const Route route =
      op.kind == OpKind::copy_out ? topology.device_to_host(gpu) : topology.host_to_device(gpu);
  const std::uint32_t position =
      add({.transfer = make_flow(topology, route.latency + kCopyStart,
                                 static_cast<double>(op.bytes.value()), route.links),
           .kind = op.kind,
           .bytes = op.bytes,
           .first_stream = op.stream,
           .from = rank,
           .to = rank},
          known);
  add_users(transfers_[position].transfer, {op.kind, rank, op.stream});
  return position;
}

std::uint32_t CommunicationPlan::plan_message(const TimedProgram& timed, const ProgramOp& op,
                                              int rank) {
  RankPosition peer = position_of(rank, timed.program.layout);
  peer.pipeline = op.peer_stage;
  const int to = rank_of(peer, timed.program.layout);
  const LinkUser user{op.kind, rank, op.stream};
  Positions& known = of_sender_[static_cast<std::size_t>(rank)];
  for (const std::uint32_t position : known) {
    const PlannedTransfer& planned = transfers_[position];
    if (planned.kind != op.kind || planned.to != to || planned.bytes != op.bytes) continue;
    if (planned.first_stream != op.stream) add_users(planned.transfer, user);
    return position;
  }
  const CollectiveSettings& settings = timed.collectives;
  PlannedTransfer planned{.transfer = {},
                          .kind = op.kind,
                          .bytes = op.bytes,
                          .first_stream = op.stream,
                          .from = rank,
                          .to = to};
  if (settings.nccl_messages) {
    const CollectiveCall call =
        settings.call_of(GroupKind::pipeline, CollectiveKind::send_recv, op.bytes);
    const std::vector<int> ends = {rank, to};
    planned.transfer =
        make_transfer(timed, call, ends, costs_.of(call, timed.program.gpus_of(ends)));
  } else {
    const Route route = timed.topology.route(timed.program.gpu_of(rank), timed.program.gpu_of(to));
    planned.transfer = make_flow(timed.topology, route.latency,
                                 static_cast<double>(op.bytes.value()), route.links);
  }
  const std::uint32_t position = add(std::move(planned), known);
  add_users(transfers_[position].transfer, user);
  return position;
}

void CommunicationPlan::add_users(const Transfer& transfer, const LinkUser& user) {
  const auto add = [&](PathId path) {
    users_.add(paths_[static_cast<std::size_t>(path.index())], user);
  };
  for (const ChunkHop& hop : transfer.hops) {
    if (hop.path.valid()) add(hop.path);
  }
  if (transfer.path.valid()) add(transfer.path);
}

Transfer CommunicationPlan::make_transfer(const TimedProgram& timed, const CollectiveCall& call,
                                          const std::vector<int>& ranks, const TransferCost& cost) {
  const CollectiveSettings& settings = timed.collectives;
  if (settings.fidelity == NetworkFidelity::analytic) {
    return {.delay = cost.latency, .moving = cost.solo_time - cost.latency, .load = cost.load};
  }
  Transfer transfer;
  if (settings.fidelity == NetworkFidelity::chunk) transfer = make_chunks(timed, call, ranks);
  if (transfer.hops.empty()) {
    transfer = make_flow(timed.topology, cost.latency, cost.bytes_per_link, cost.links);
  }
  transfer.load = cost.load;
  return transfer;
}

Transfer CommunicationPlan::make_flow(const Topology& topology, Seconds latency, double bytes,
                                      std::vector<LinkId> links) {
  std::erase_if(links, [&](LinkId link) { return !orbits_.is_planned(link); });
  if (bytes <= 0 || links.empty()) return {.delay = latency};
  return {.delay = latency,
          .bytes = bytes,
          .path = path_over(links),
          .rate = slowest_of(topology, links)};
}

PathId CommunicationPlan::path_over(const std::vector<LinkId>& links) {
  Color hash = links.size();
  for (const LinkId link : links) hash = mixed_color(hash, static_cast<Color>(link.index()));
  const auto [begin, end] = path_of_links_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    if (paths_[static_cast<std::size_t>(known->second.index())] == links) return known->second;
  }
  const PathId next(static_cast<int>(paths_.size()));
  path_of_links_.emplace(hash, next);
  paths_.push_back(links);
  return next;
}

Transfer CommunicationPlan::make_chunks(const TimedProgram& timed, const CollectiveCall& call,
                                        const std::vector<int>& ranks) {
  const Topology& topology = timed.topology;
  if (ranks.size() < 2 || ranks.size() > kMostChunkedRanks || call.bytes <= Bytes(0)) return {};
  const std::vector<int> gpus = timed.program.gpus_of(ranks);
  const CollectiveCost cost = collective_cost(topology, call, gpus, timed.collectives.tuning());
  const auto schedule = chunk_schedule(topology, call, cost, gpus);
  if (!schedule) return {};
  Transfer transfer{.delay = std::max(Seconds(0), cost.latency - schedule->fill)};
  for (const ChunkMove& move : schedule->moves) {
    ChunkHop hop{.path = {}, .pieces = move.pieces, .waits = move.waits};
    if (move.bytes > 0) {
      hop.path = path_over(links_of(topology, move));
      hop.bytes = move.bytes / cost.protocol_share;
    }
    transfer.hops.push_back(std::move(hop));
  }
  return transfer;
}

void CommunicationPlan::use_closed_form_on_private_links(Transfer& transfer) const {
  if (!transfer.path.valid()) return;
  if (users_.any_shared(paths_[static_cast<std::size_t>(transfer.path.index())])) return;
  transfer.moving = Seconds(transfer.bytes / transfer.rate.value());
  transfer.path = {};
}

void CommunicationPlan::fold(const TimedProgram& timed) {
  path_of_links_.clear();
  const bool chunks = timed.collectives.fidelity == NetworkFidelity::chunk;
  if (timed.paces.kernel_jitter > 0 || chunks) {
    folding_ = unfolded(timed.program.layout.world_size());
    const char* reason = chunks ? "every chunk is simulated, hop by hop"
                                : "the jitter of kernels differs from GPU to GPU";
    for (const char* name : {"tensor", "data"}) folding_.ranks.refused.push_back({name, reason});
    network_ = without_unused_links(timed.topology, std::move(paths_));
  } else if (timed.simulation.fold.any()) {
    FoldedJob job = fold_job(timed, orbits_, communicators_, transfers_, paths_);
    folding_ = std::move(job.folding);
    network_ = std::move(job.network);
  } else {
    folding_ = unfolded(timed.program.layout.world_size());
    network_ = without_unused_links(timed.topology, std::move(paths_));
  }
  paths_.clear();
}

void CommunicationPlan::limit_paths_of_collectives() {
  network_.has_limit.assign(network_.paths.size(), false);
  for (const PlannedTransfer& planned : transfers_) {
    const Transfer& transfer = planned.transfer;
    if (!transfer.path.valid() || transfer.load.bandwidth <= 0) continue;
    network_.has_limit[static_cast<std::size_t>(transfer.path.index())] = true;
  }
}

// A folded communicator is met at the first of its class, by every rank whose own it stands for.
void CommunicationPlan::count_simulated_members() {
  simulated_members_.clear();
  for (const Communicator& all : communicators_.all()) {
    const bool is_listed = all.kind == GroupKind::listed;  // never folded
    simulated_members_.push_back(is_listed ? static_cast<int>(all.ranks.size()) : 0);
  }
  for (const int rank : folding_.simulated) {
    for (const int own : communicators_.of(rank)) {
      if (own >= 0) ++simulated_members_[static_cast<std::size_t>(folding_.communicator_of(own))];
    }
  }
}

const Transfer& CommunicationPlan::collective(int communicator, OpKind kind, Bytes bytes) const {
  for (const PlannedTransfer& planned : transfers_) {
    if (planned.communicator == communicator && planned.kind == kind && planned.bytes == bytes)
      return planned.transfer;
  }
  throw std::out_of_range("no such collective");
}

const Transfer& CommunicationPlan::message(int from_rank, int to_rank, Bytes bytes) const {
  for (const PlannedTransfer& planned : transfers_) {
    if (planned.from == from_rank && planned.to == to_rank && planned.bytes == bytes)
      return planned.transfer;
  }
  throw std::out_of_range("no such message");
}

}  // namespace tessera
