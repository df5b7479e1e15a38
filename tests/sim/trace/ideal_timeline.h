#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/trace/timeline.h"
#include "tests/sim/trace/handmade_step.h"

namespace tessera::testing {

/// Runs a program of kernels and messages without host and network: an op starts when its stream
/// and its waits allow, a message takes `message_time` from there. Memory stays static. Independent
/// of the engine on purpose: a dozen lines that a reader can check.
class IdealRun {
 public:
  IdealRun(const TimedProgram& timed, Seconds message_time)
      : timed_(timed), message_time_(message_time) {
    const int ranks = timed.program.layout.world_size();
    for (int rank = 0; rank < ranks; ++rank) records_.emplace_back(ops_of(rank).size());
  }

  Timeline run() {
    while (sweep()) {
    }
    return collect();
  }

 private:
  using MaybeRecord = std::optional<OpRecord>;

  const RankProgram& program_of(int rank) const {
    const int stage = position_of(rank, timed_.program.layout).pipeline;
    return timed_.program.stages[static_cast<std::size_t>(stage)];
  }
  const std::vector<ProgramOp>& ops_of(int rank) const { return program_of(rank).ops; }
  MaybeRecord& record(int rank, std::size_t op) {
    return records_[static_cast<std::size_t>(rank)][op];
  }

  /// Runs whatever can run; false when nothing could.
  bool sweep() {
    bool progress = false;
    for (int rank = 0; rank < static_cast<int>(records_.size()); ++rank) {
      for (std::size_t op = 0; op < ops_of(rank).size(); ++op) {
        if (!record(rank, op)) progress |= try_run(rank, op);
      }
    }
    return progress;
  }

  bool try_run(int rank, std::size_t at) {
    const ProgramOp& op = ops_of(rank)[at];
    Seconds ready;
    for (std::size_t before = 0; before < at; ++before) {
      const bool waits = std::count(op.waits.begin(), op.waits.end(), before) > 0;
      if (!waits && ops_of(rank)[before].stream != op.stream) continue;
      if (!record(rank, before)) return false;
      ready = std::max(ready, record(rank, before)->end);
    }
    const std::optional<Seconds> end = end_of(rank, op, ready);
    if (!end) return false;
    record(rank, at) = OpRecord{ready, *end, ready, static_cast<std::int32_t>(at)};
    const int stage = program_of(rank).stage;
    if (op.kind == OpKind::send) arrival_[{stage, op.peer_stage, op.tag}] = *end;
    return true;
  }

  std::optional<Seconds> end_of(int rank, const ProgramOp& op, Seconds ready) const {
    if (op.kind == OpKind::kernels) {
      return ready + timed_.segments[static_cast<std::size_t>(op.segment.index())].duration;
    }
    if (op.kind == OpKind::send) return ready + message_time_;
    const auto arrival = arrival_.find({op.peer_stage, program_of(rank).stage, op.tag});
    if (arrival == arrival_.end()) return std::nullopt;
    return std::max(ready, arrival->second);
  }

  Timeline collect() const {
    Timeline timeline;
    for (int rank = 0; rank < static_cast<int>(records_.size()); ++rank) {
      for (const MaybeRecord& done : records_[static_cast<std::size_t>(rank)]) {
        timeline.ops.push_back(done.value());
        timeline.step_time = std::max(timeline.step_time, done->end);
      }
      timeline.peak_memory.push_back(program_of(rank).static_memory);
      timeline.memory.push_back({rank, Seconds(), program_of(rank).static_memory});
    }
    return timeline;
  }

  const TimedProgram& timed_;
  Seconds message_time_;
  std::vector<std::vector<MaybeRecord>> records_;         // by rank and op
  std::map<std::tuple<int, int, int>, Seconds> arrival_;  // from stage, to stage, tag
};

inline Timeline ideal_timeline(const TimedProgram& timed, Seconds message_time = Seconds()) {
  return IdealRun(timed, message_time).run();
}

/// Adds the record of op number `op` to a timeline that a test writes down by hand, in order of
/// (rank, op).
inline void record_op(Timeline& timeline, std::int32_t op, double start, double end) {
  timeline.ops.push_back({Seconds(start), Seconds(end), Seconds(start), op});
  timeline.step_time = std::max(timeline.step_time, Seconds(end));
}

}  // namespace tessera::testing
