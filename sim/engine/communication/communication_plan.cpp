#include "sim/engine/communication/communication_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

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

/// A copy of the host itself: from its memory out of the node, as a checkpoint is written.
bool leaves_node(const ProgramOp& op) {
  return op.kind == OpKind::copy_out && op.stream == StreamKind::host;
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

}  // namespace

CommunicationPlan::CommunicationPlan(const TimedProgram& timed,
                                     std::span<const LinkId> used_by_others)
    : orbits_(timed),
      maker_(timed, orbits_),
      communicators_(timed.program),
      of_communicator_(communicators_.all().size()),
      of_sender_(static_cast<std::size_t>(timed.program.layout.world_size())) {
  plan_transfers(timed);
  maker_.share(used_by_others);
  for (PlannedTransfer& planned : transfers_) {
    maker_.use_closed_form_on_private_links(planned.transfer);
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
    std::ranges::move(plan_pressure_copies(timed, static_cast<int>(distinct.size()) - 1, first),
                      std::back_inserter(distinct.back()));
  }
  first_of_rank_.resize(of_sender_.size());
  for (const int rank : orbits_.planned()) {
    const int stage = timed.program.program_number(rank);
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
  const std::int32_t number = pressure_numbers_[static_cast<std::size_t>(stage)].at({kind, bytes});
  return transfers_[of_rank_[first_of_rank_[static_cast<std::size_t>(rank)] +
                             static_cast<std::size_t>(number)]];
}

/// The transfer among `known` that is the same but for what its user is, or a new one that `make`
/// makes.
std::uint32_t CommunicationPlan::find_or_add(Positions& known, PlannedTransfer wanted,
                                             const LinkUser& user, auto&& make) {
  for (const std::uint32_t position : known) {
    const PlannedTransfer& planned = transfers_[position];
    if (planned.kind != wanted.kind || planned.to != wanted.to || planned.bytes != wanted.bytes)
      continue;
    if (planned.first_stream != user.stream) maker_.add_user(planned.transfer, user);
    return position;
  }
  wanted.transfer = make();
  wanted.first_stream = user.stream;
  maker_.add_user(wanted.transfer, user);
  const auto position = static_cast<std::uint32_t>(transfers_.size());
  known.push_back(position);
  transfers_.push_back(std::move(wanted));
  return position;
}

std::uint32_t CommunicationPlan::plan_transfer(const TimedProgram& timed, const ProgramOp& op,
                                               int rank) {
  if (op.kind == OpKind::send) return plan_message(timed, op, rank);
  return is_copy(op.kind) ? plan_copy(timed, op, rank) : plan_collective(timed, op, rank);
}

std::uint32_t CommunicationPlan::plan_collective(const TimedProgram& timed, const ProgramOp& op,
                                                 int rank) {
  const int communicator = communicators_.index_of(rank, op);
  // Of any kind: collectives of one communicator on one stream never overlap.
  const LinkUser user{OpKind::all_reduce, communicator, op.stream};
  const PlannedTransfer wanted{
      .kind = op.kind, .group = op.group, .bytes = op.bytes, .communicator = communicator};
  return find_or_add(of_communicator_[static_cast<std::size_t>(communicator)], wanted, user, [&] {
    const CollectiveCall call = timed.collectives.call_of(timed.program, op);
    return maker_.of(call, communicators_[communicator].ranks, op.kind == OpKind::ring_shift);
  });
}

std::uint32_t CommunicationPlan::plan_copy(const TimedProgram& timed, const ProgramOp& op,
                                           int rank) {
  const bool leaves = leaves_node(op);
  const PlannedTransfer wanted{
      .kind = op.kind, .bytes = op.bytes, .from = rank, .to = leaves ? -1 : rank};
  return find_or_add(
      of_sender_[static_cast<std::size_t>(rank)], wanted, {op.kind, rank, op.stream}, [&] {
        const int gpu = timed.program.gpu_of(rank);
        Route route = leaves                        ? timed.topology.host_to_network(gpu)
                      : op.kind == OpKind::copy_out ? timed.topology.device_to_host(gpu)
                                                    : timed.topology.host_to_device(gpu);
        route.latency += kCopyStart;
        return maker_.flow(std::move(route), op.bytes);
      });
}

std::uint32_t CommunicationPlan::plan_message(const TimedProgram& timed, const ProgramOp& op,
                                              int rank) {
  RankPosition peer = position_of(rank, timed.program.layout);
  peer.pipeline = op.peer_stage;
  const int to = rank_of(peer, timed.program.layout);
  const PlannedTransfer wanted{.kind = op.kind, .bytes = op.bytes, .from = rank, .to = to};
  const CollectiveSettings& settings = timed.collectives;
  return find_or_add(
      of_sender_[static_cast<std::size_t>(rank)], wanted, {op.kind, rank, op.stream}, [&] {
        if (settings.nccl_messages) {
          return maker_.of(
              settings.call_of(GroupKind::pipeline, CollectiveKind::send_recv, op.bytes),
              {rank, to});
        }
        return maker_.flow(
            timed.topology.route(timed.program.gpu_of(rank), timed.program.gpu_of(to)), op.bytes);
      });
}

void CommunicationPlan::fold(const TimedProgram& timed) {
  std::vector<std::vector<LinkId>> paths = maker_.take_paths();
  const bool chunks = timed.collectives.fidelity == NetworkFidelity::chunk;
  if (timed.paces.kernel_jitter > 0 || chunks) {
    folding_ = unfolded(timed.program.layout.world_size());
    const char* reason = chunks ? "every chunk is simulated, hop by hop"
                                : "the jitter of kernels differs from GPU to GPU";
    for (const char* name : {"tensor", "data"}) folding_.ranks.refused.push_back({name, reason});
    network_ = without_unused_links(timed.topology, std::move(paths));
  } else if (timed.simulation.fold.any()) {
    FoldedJob job = fold_job(timed, orbits_, communicators_, transfers_, paths);
    folding_ = std::move(job.folding);
    network_ = std::move(job.network);
  } else {
    folding_ = unfolded(timed.program.layout.world_size());
    network_ = without_unused_links(timed.topology, std::move(paths));
  }
}

void CommunicationPlan::limit_paths_of_collectives() {
  network_.has_limit.assign(network_.paths.size(), false);
  for (const PlannedTransfer& planned : transfers_) {
    const Transfer& transfer = planned.transfer;
    if (!transfer.path.valid() || transfer.load.bandwidth <= 0) continue;
    network_.has_limit[static_cast<std::size_t>(transfer.path.index())] = true;
  }
}

void CommunicationPlan::number_paths_from(int first) {
  const auto renumber = [first](PathId& path) {
    if (path.valid()) path = PathId(path.index() + first);
  };
  for (PlannedTransfer& planned : transfers_) {
    renumber(planned.transfer.path);
    for (ChunkHop& hop : planned.transfer.hops) renumber(hop.path);
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
