#include "app/search/stage_bound.h"

#include <algorithm>
#include <limits>

#include "sim/collectives/rings/ring_shift.h"
#include "sim/engine/communication/transfer_costs.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

/// Collectives that kernels of their own pass wait for.
bool holds_up_passes(const ProgramOp& op) {
  return is_collective(op.kind) &&
         (op.group == GroupKind::tensor || op.group == GroupKind::context ||
          op.group == GroupKind::expert || op.group == GroupKind::expert_tensor);
}

std::int32_t last_kernels_of_passes(const RankProgram& stage) {
  for (auto op = static_cast<std::int32_t>(stage.ops.size()); op-- > 0;) {
    const ProgramOp& at = stage.ops[static_cast<std::size_t>(op)];
    const bool of_pass = at.kind == OpKind::kernels && at.stream == StreamKind::compute;
    if (of_pass && at.micro_batch >= 0) return op;
  }
  return -1;
}

/// Walks through a stage, block pass by block pass, each as if it began with everything idle.
class StageWalk {
 public:
  StageWalk(const Program& program, const RankProgram& stage, int rank,
            const std::vector<TimedSegment>& segments, CollectiveTimes& times)
      : program_(program),
        stage_(stage),
        segments_(segments),
        times_(times),
        rank_(rank),
        last_pass_(last_kernels_of_passes(stage)),
        ends_(stage.ops.size()) {}

  StageBound run() {
    for (std::int32_t op = 0; op < std::ssize(stage_.ops); ++op) visit(op);
    finish_pass();
    bound_.data = *std::ranges::max_element(busy_);
    return std::move(bound_);
  }

 private:
  const ProgramOp& op(std::int32_t number) const {
    return stage_.ops[static_cast<std::size_t>(number)];
  }

  void visit(std::int32_t number) {
    const ProgramOp& at = op(number);
    const bool kernels = at.kind == OpKind::kernels;
    if (!kernels && !is_collective(at.kind)) return;
    Seconds duration = kernels ? segments_[static_cast<std::size_t>(at.segment.index())].duration
                               : times_.alone(at, rank_, program_);
    const bool of_passes = kernels || holds_up_passes(at);
    if (!of_passes) busy_[static_cast<std::size_t>(at.stream)] += duration;
    const bool closing = number > last_pass_;
    if (!of_passes && !closing) return;
    enter(number, closing);
    // What waits for nothing of the closing may have run beside the last passes.
    if (!of_passes && !is_behind_passes(at)) duration = Seconds(0);
    place(number, duration, closing);
  }

  void enter(std::int32_t number, bool closing) {
    const ProgramOp& at = op(number);
    const BlockPass next{closing ? -2 : at.micro_batch, at.layer, at.phase == Phase::backward, {}};
    const bool same = in_pass_ && next.micro_batch == pass_.micro_batch &&
                      (closing || (next.layer == pass_.layer && next.backward == pass_.backward));
    if (same) return;
    finish_pass();
    pass_ = next;
    in_pass_ = true;
    first_of_pass_ = number;
  }

  bool is_behind_passes(const ProgramOp& at) const {
    return std::ranges::any_of(at.waits, [&](std::int32_t wait) { return wait >= last_pass_; });
  }

  void place(std::int32_t number, Seconds duration, bool closing) {
    const ProgramOp& at = op(number);
    Seconds& stream = streams_[static_cast<std::size_t>(at.stream)];
    Seconds start = stream;
    for (const std::int32_t wait : at.waits)
      if (wait >= first_of_pass_) start = std::max(start, ends_[static_cast<std::size_t>(wait)]);
    stream = ends_[static_cast<std::size_t>(number)] = start + duration;
    if (closing || at.stream == StreamKind::compute) pass_.span = std::max(pass_.span, stream);
  }

  void finish_pass() {
    if (in_pass_ && pass_.micro_batch == -2) bound_.closing += pass_.span;
    if (in_pass_ && pass_.micro_batch != -2) bound_.passes.push_back(pass_);
    streams_ = {};
    in_pass_ = false;
  }

  const Program& program_;
  const RankProgram& stage_;
  const std::vector<TimedSegment>& segments_;
  CollectiveTimes& times_;
  int rank_;
  std::int32_t last_pass_;
  std::vector<Seconds> ends_;                    ///< by op, from the begin of its pass
  std::array<Seconds, kStreamCount> streams_{};  ///< likewise
  std::array<Seconds, kStreamCount> busy_{};     ///< with collectives over replicas
  BlockPass pass_;
  bool in_pass_ = false;
  std::int32_t first_of_pass_ = 0;
  StageBound bound_;
};

/// Segments allocate in the order of the compute stream. What other ops allocate they free again:
/// leaving it out leaves a bound.
Bytes memory_of_segments(const Program& program, const RankProgram& stage) {
  Bytes used, highest;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels) continue;
    const Segment& segment = program.segment(op.segment);
    highest = std::max(highest, used + segment.peak_above_start);
    used += segment.net_memory;
  }
  return highest;
}

std::vector<int> members_of(GroupKind kind, int rank, const ParallelLayout& layout) {
  const GroupCoordinates key = group_key(rank, kind, layout);
  std::vector<int> members;
  for (int other = 0; other < layout.world_size(); ++other)
    if (is_group_member(other, kind, layout) && group_key(other, kind, layout) == key)
      members.push_back(other);
  return members;
}

}  // namespace

const CollectiveTimes::Known& CollectiveTimes::known(const ProgramOp& op, int rank,
                                                     const Program& program) {
  const std::array<std::int64_t, 4> key = {static_cast<int>(op.kind), static_cast<int>(op.group),
                                           op.bytes.value(), rank};
  const auto [entry, is_new] = known_.try_emplace(key);
  if (!is_new) return entry->second;
  const auto [group, unknown] = groups_.try_emplace({static_cast<int>(op.group), rank});
  if (unknown) group->second = members_of(op.group, rank, program.layout);
  const CollectiveCall call = settings_.call_of(program, op);
  const CollectiveCost cost = op.kind == OpKind::ring_shift
                                  ? ring_shift_cost(topology_, op.bytes, group->second, tuning_)
                                  : collective_cost(topology_, call, group->second, tuning_);
  entry->second.time = cost.solo_time;
  if (settings_.slows_kernels) entry->second.load = load_of(cost, topology_.cluster().node.gpu);
  return entry->second;
}

Seconds CollectiveTimes::message(const ProgramOp& op, int rank, const Program& program) {
  const auto [entry, is_new] = messages_.try_emplace({rank, op.peer_stage, op.bytes.value()});
  if (!is_new) return entry->second;
  RankPosition peer = position_of(rank, program.layout);
  peer.pipeline = op.peer_stage;
  const int to = rank_of(peer, program.layout);
  if (to != rank) entry->second = message_cost(op, program.gpu_of(rank), program.gpu_of(to));
  return entry->second;
}

/// As the engine plans messages (CommunicationPlan::plan_message).
Seconds CollectiveTimes::message_cost(const ProgramOp& op, int from, int to) const {
  if (settings_.nccl_messages) {
    const CollectiveCall call =
        settings_.call_of(GroupKind::pipeline, CollectiveKind::send_recv, op.bytes);
    return collective_cost(topology_, call, std::vector{from, to}, tuning_).solo_time;
  }
  const Route route = topology_.route(from, to);
  BytesPerSecond slowest(std::numeric_limits<double>::infinity());
  for (const LinkId link : route.links) slowest = std::min(slowest, topology_.link(link).bandwidth);
  return route.latency + Seconds(static_cast<double>(op.bytes.value()) / slowest.value());
}

Seconds StageBound::passes_time() const {
  Seconds sum;
  for (const BlockPass& pass : passes) sum += pass.span;
  return sum;
}

StageBound stage_bound(const Program& program, const RankProgram& stage, int rank,
                       const std::vector<TimedSegment>& segments, Bytes static_memory,
                       CollectiveTimes& times) {
  StageBound bound = StageWalk(program, stage, rank, segments, times).run();
  bound.memory = static_memory + memory_of_segments(program, stage);
  return bound;
}

}  // namespace tessera
