#include "sim/plan/launch_clock.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/collective.h"
#include "workloads/memory/memory_replay.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

/// Micro-batches after which hosts are as far apart as their queues let them.
constexpr int kSettled = 24;

constexpr std::size_t index_of(StreamKind stream) {
  return static_cast<std::size_t>(stream);
}

/// When messages have left: sender, receiver and tag.
using Messages = std::map<std::tuple<int, int, int>, Seconds>;

/// Longer than a host takes for a step: until one more stage has begun its job.
constexpr Seconds kStart = Seconds(1e4);

class LaunchClock {
 public:
  LaunchClock(const TimedProgram& timed, int stage, int micro_batches, Messages& messages,
              bool starts_job = false)
      : timed_(timed),
        starts_job_(starts_job),
        messages_(messages),
        stage_(timed.program.stages[static_cast<std::size_t>(stage)]),
        tuning_(timed.collectives.tuning()),
        rank_(first_rank(timed.program, stage)),
        drift_(timed.group_host_time[static_cast<std::size_t>(GroupKind::tensor)] > Seconds(0)
                   ? 1
                   : kSlowestHost),
        micro_batches_(micro_batches) {}

  /// Goes on to the first receive of what was not sent yet, or past it where `waits_no_longer`.
  /// Gives whether it went on at all.
  bool advance(bool waits_no_longer) {
    const std::size_t begin = next_;
    for (; next_ < stage_.ops.size(); ++next_) {
      const ProgramOp& op = stage_.ops[next_];
      const bool timed = op.micro_batch < micro_batches_;
      const bool waits = timed && op.kind == OpKind::recv && !messages_.contains(name_of(op));
      if (waits && !std::exchange(waits_no_longer, false)) break;
      times_.issued.push_back(host_);
      ends_.push_back(timed ? run(op) : Seconds(0));
      if (timed && op.kind == OpKind::send) messages_.try_emplace(name_of(op), ends_.back());
      if (op.stream != StreamKind::compute) communicated_ = std::max(communicated_, ends_.back());
      times_.communicated.push_back(communicated_);
    }
    return next_ > begin;
  }
  StepLaunches times() && { return std::move(times_); }

 private:
  static int first_rank(const Program& program, int stage) {
    int rank = 0;
    while (program.program_number(rank) != stage) ++rank;
    return rank;
  }

  /// Gives when it has ended.
  Seconds run(const ProgramOp& op) {
    const Seconds ready = std::max(end_of(op.waits[0]), end_of(op.waits[1]));
    Seconds end = std::max(ready, of_stream(op.stream));
    if (op.kind != OpKind::kernels) {
      const Seconds others = op.group == GroupKind::tensor && is_collective(op.kind)
                                 ? slowest_ + drift_ * timed_.host_time_of(op)
                                 : Seconds(0);
      end = launch(timed_.host_time_of(op), std::max({end, arrival(op), others}), duration_of(op),
                   is_collective(op.kind) ? kEntriesOfCollective : 1);
    } else {
      const TimedSegment& segment = timed_.segments[static_cast<std::size_t>(op.segment.index())];
      const auto kernels = static_cast<double>(segment.kernel_durations.size());
      if (kernels == 0) pass(segment.host_time);
      for (const Seconds duration : segment.kernel_durations)
        end = launch(segment.host_time / kernels, end, duration);
      if (timed_.program.segment(op.segment).host_sync) wait_for(end);
    }
    has_received_ = has_received_ || op.kind == OpKind::recv;
    if (meets_starting_stages(op))
      of_stream(StreamKind::compute) = end = std::max(end, op.micro_batch * kStart);
    of_stream(op.stream) = end;
    if (op.host_sync) wait_for(end);
    return end;
  }

  /// In a job's first step micro-batch k goes on when the k-th stage has run the one before, for
  /// which it compiles kernels and joins communicators: until then the stages ahead of it are held
  /// up. Streams wait for the message; the host of a stage that has received nothing yet does not.
  bool meets_starting_stages(const ProgramOp& op) const {
    return starts_job_ && op.kind == OpKind::send && !has_received_;
  }

  /// Time of the host, and of the slowest of its group.
  void pass(Seconds time) {
    host_ += time;
    slowest_ += drift_ * time;
  }
  void wait_for(Seconds end) {
    host_ = std::max(host_, end);
    slowest_ = std::max(slowest_, end);
  }

  /// A launch of so many entries of the queue, which starts at `ready` or when the host has issued
  /// it.
  Seconds launch(Seconds host_time, Seconds ready, Seconds duration, int entries = 1) {
    pass(host_time);
    while (queue_.size() + static_cast<std::size_t>(entries) > kQueuedLaunches) {
      host_ = std::max(host_, queue_.front());
      queue_.pop_front();
    }
    Seconds start = std::max(host_, ready);
    if (timed_.single_hardware_queue) start = last_start_ = std::max(start, last_start_);
    queue_.insert(queue_.end(), static_cast<std::size_t>(entries), start + duration);
    return start + duration;
  }

  std::tuple<int, int, int> name_of(const ProgramOp& op) const {
    const bool sent = op.kind == OpKind::send;
    return {sent ? stage_.stage : op.peer_stage, sent ? op.peer_stage : stage_.stage, op.tag};
  }
  /// Of what another stage sends; where nobody does, when the own kernels are done.
  Seconds arrival(const ProgramOp& op) const {
    if (op.kind != OpKind::recv) return Seconds(0);
    const auto sent = messages_.find(name_of(op));
    return sent == messages_.end() ? streams_[index_of(StreamKind::compute)] : sent->second;
  }

  Seconds duration_of(const ProgramOp& op) {
    if (!is_collective(op.kind) || op.kind == OpKind::ring_shift) return Seconds(0);
    const auto [entry, is_new] = durations_.try_emplace({op.kind, op.group, op.bytes});
    if (is_new)
      entry->second =
          collective_cost(timed_.topology, timed_.collectives.call_of(timed_.program, op),
                          gpus_of(op.group), tuning_)
              .solo_time;
    return entry->second;
  }

  const std::vector<int>& gpus_of(GroupKind group) {
    const auto [entry, is_new] = groups_.try_emplace(group);
    if (!is_new) return entry->second;
    const ParallelLayout& layout = timed_.program.layout;
    const GroupCoordinates key = group_key(rank_, group, layout);
    for (int rank = 0; rank < layout.world_size(); ++rank)
      if (is_group_member(rank, group, layout) && group_key(rank, group, layout) == key)
        entry->second.push_back(timed_.program.gpu_of(rank));
    return entry->second;
  }

  Seconds& of_stream(StreamKind stream) { return streams_[index_of(stream)]; }
  Seconds end_of(std::int32_t op) const {
    return op < 0 ? Seconds(0) : ends_[static_cast<std::size_t>(op)];
  }

  const TimedProgram& timed_;
  bool starts_job_;
  Messages& messages_;
  const RankProgram& stage_;
  CollectiveTuning tuning_;
  int rank_;
  double drift_;  ///< of the slowest host of the tensor group
  int micro_batches_;
  bool has_received_ = false;
  Seconds host_, slowest_, last_start_, communicated_;
  std::array<Seconds, kStreamCount> streams_{};
  std::size_t next_ = 0;
  StepLaunches times_;
  std::vector<Seconds> ends_;  ///< by op
  std::deque<Seconds> queue_;  ///< ends of launches, the oldest first
  std::map<GroupKind, std::vector<int>> groups_;
  std::map<std::tuple<OpKind, GroupKind, Bytes>, Seconds> durations_;
};

/// Of a stage alone: what it receives is there when its own kernels are done.
StepLaunches first_step(const TimedProgram& timed, int stage, int micro_batches) {
  Messages none;
  LaunchClock clock(timed, stage, micro_batches, none, true);
  while (clock.advance(true)) continue;
  return std::move(clock).times();
}

}  // namespace

std::vector<LaunchTimes> launch_times(const TimedProgram& timed) {
  const std::vector<RankProgram>& stages = timed.program.stages;
  std::vector<LaunchTimes> times(stages.size());
  if (!timed.records_streams) return times;
  int micro_batches = kSettled;
  for (const RankProgram& stage : stages)
    micro_batches = std::max(micro_batches, telling_micro_batches(stage));
  Messages messages;
  std::vector<LaunchClock> clocks;
  for (int stage = 0; stage < std::ssize(stages); ++stage)
    clocks.emplace_back(timed, stage, micro_batches, messages);
  for (bool goes_on = true, stuck = false; goes_on || !stuck;) {
    stuck = !std::exchange(goes_on, false);
    for (LaunchClock& clock : clocks) {
      const bool advanced = clock.advance(stuck);
      goes_on = goes_on || advanced;
      if (stuck && advanced) break;
    }
  }
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    times[stage].micro_batches = micro_batches;
    times[stage].later = std::move(clocks[stage]).times();
    times[stage].first = stages.size() == 1
                             ? times[stage].later
                             : first_step(timed, static_cast<int>(stage), micro_batches);
  }
  return times;
}

}  // namespace tessera
