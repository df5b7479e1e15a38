#include "sim/report/analysis/link_use.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/collectives/rings/ring_shift.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

/// What a transfer puts on links after its latency.
struct OperatorLoad {
  Seconds latency;
  std::vector<LinkLoad> links;
};

class LinkAccount {
 public:
  LinkAccount(const TimedProgram& timed, const TimelineIndex& index, int parts)
      : timed_(timed),
        program_(timed.program),
        index_(index),
        parts_(static_cast<std::size_t>(parts)),
        bytes_(timed.topology.links().size()),
        tuning_(timed.collectives.tuning()) {
    use_.part = index.step_time() / static_cast<double>(parts);
  }

  LinkUse run() {
    for (int rank = 0; rank < index_.ranks(); ++rank) add_rank(rank);
    for (std::size_t link = 0; link < bytes_.size(); ++link) {
      if (!bytes_[link].empty())
        use_.links.push_back({LinkId(static_cast<std::int32_t>(link)), std::move(bytes_[link])});
    }
    return std::move(use_);
  }

 private:
  void add_rank(int rank) {
    const auto records = index_.records_of(rank);
    const std::vector<ProgramOp>& ops = index_.program_of(rank).ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const ProgramOp& op = ops[i];
      if (op.kind == OpKind::kernels || op.kind == OpKind::recv) continue;
      if (const OperatorLoad* load = load_of(op, rank)) add(*load, records[i]);
    }
  }

  void add(const OperatorLoad& load, const OpRecord& record) {
    const Seconds begin = std::min(record.transfer_start + load.latency, record.end);
    const double from = begin / use_.part;
    const double to = std::max(record.end / use_.part, from);
    const auto first = std::min(static_cast<std::size_t>(from), parts_ - 1);
    const auto last = std::min(static_cast<std::size_t>(to), parts_ - 1);
    for (const LinkLoad& on : load.links) {
      std::vector<double>& bytes = bytes_[static_cast<std::size_t>(on.link.index())];
      bytes.resize(parts_, 0.0);
      if (first == last) {
        bytes[first] += on.bytes;
        continue;
      }
      for (std::size_t part = first; part <= last; ++part) {
        const auto at = static_cast<double>(part);
        const double share = std::min(to, at + 1) - std::max(from, at);
        bytes[part] += on.bytes * share / (to - from);
      }
    }
  }

  /// Nothing where another rank counts the transfer: a collective is its first member's.
  const OperatorLoad* load_of(const ProgramOp& op, int rank) {
    const int owner = is_collective(op.kind) ? first_member(rank, op) : rank;
    if (owner != rank) return nullptr;
    const auto [known, is_new] =
        loads_.try_emplace({rank, op.kind, op.group_of_rank(), op.peer_stage, op.bytes.value()});
    if (is_new) known->second = make_load(op, rank);
    return &known->second;
  }

  OperatorLoad make_load(const ProgramOp& op, int rank) const {
    if (is_copy(op.kind)) {
      const int gpu = program_.gpu_of(rank);
      return of_route(op.kind == OpKind::copy_out ? timed_.topology.device_to_host(gpu)
                                                  : timed_.topology.host_to_device(gpu),
                      op.bytes, kCopyStart);
    }
    if (op.kind == OpKind::send) return message(op, rank);
    const std::vector<int> gpus = program_.gpus_of(members_of(rank, op));
    const CollectiveCall call = timed_.collectives.call_of(program_, op);
    return of_cost(
        op.kind == OpKind::ring_shift
            ? ring_shift_cost(timed_.topology, op.bytes, gpus, tuning_, call.copy_engines)
            : collective_cost(timed_.topology, call, gpus, tuning_));
  }

  OperatorLoad message(const ProgramOp& op, int rank) const {
    RankPosition peer = index_.position(rank);
    peer.pipeline = op.peer_stage;
    const std::vector<int> ends = program_.gpus_of({rank, rank_of(peer, program_.layout)});
    if (!timed_.collectives.nccl_messages)
      return of_route(timed_.topology.route(ends[0], ends[1]), op.bytes, Seconds(0));
    const CollectiveCall call =
        timed_.collectives.call_of(GroupKind::pipeline, CollectiveKind::send_recv, op.bytes);
    return of_cost(collective_cost(timed_.topology, call, ends, tuning_));
  }

  static OperatorLoad of_cost(CollectiveCost cost) {
    return {.latency = cost.latency, .links = std::move(cost.loads)};
  }
  static OperatorLoad of_route(const Route& route, Bytes bytes, Seconds start) {
    OperatorLoad load{.latency = route.latency + start, .links = {}};
    for (const LinkId link : route.links)
      load.links.push_back({link, static_cast<double>(bytes.value())});
    return load;
  }

  int first_member(int rank, const ProgramOp& op) {
    if (op.group == GroupKind::listed)
      return program_.listed_groups[static_cast<std::size_t>(op.listed_group)].front();
    const auto key = std::pair(op.group, group_key(rank, op.group, program_.layout));
    return first_member_.try_emplace(key, rank).first->second;  // ranks come in ascending order
  }

  std::vector<int> members_of(int rank, const ProgramOp& op) const {
    if (op.group == GroupKind::listed)
      return program_.listed_groups[static_cast<std::size_t>(op.listed_group)];
    const ParallelLayout& layout = program_.layout;
    const GroupCoordinates key = group_key(rank, op.group, layout);
    std::vector<int> members;
    for (int other = 0; other < layout.world_size(); ++other) {
      if (is_group_member(other, op.group, layout) && group_key(other, op.group, layout) == key)
        members.push_back(other);
    }
    return members;
  }

  using Key = std::tuple<int, OpKind, GroupOfRank, std::int32_t, std::int64_t>;

  const TimedProgram& timed_;
  const Program& program_;
  const TimelineIndex& index_;
  std::size_t parts_;
  LinkUse use_;
  std::vector<std::vector<double>> bytes_;  ///< by link and part; empty where nothing went
  CollectiveTuning tuning_;
  std::map<Key, OperatorLoad> loads_;
  std::map<std::pair<GroupKind, GroupCoordinates>, int> first_member_;
};

}  // namespace

LinkUse link_use(const TimedProgram& timed, const TimelineIndex& index, int parts) {
  return LinkAccount(timed, index, parts).run();
}

}  // namespace tessera
