#include "app/search/stage_walk.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace tessera {
namespace {

bool is_of_pass(const ProgramOp& op) {
  return op.kind == OpKind::kernels && op.stream == StreamKind::compute && op.micro_batch >= 0;
}

/// One stage of a pipeline, as far as it was walked.
struct WalkedStage {
  std::array<Seconds, kStreamCount> streams{};
  std::vector<Seconds> ends;
  Seconds last;

  Seconds ready_for(const ProgramOp& op) const {
    Seconds start = streams[static_cast<std::size_t>(op.stream)];
    for (const std::int32_t wait : op.waits)
      if (wait >= 0 && wait < std::ssize(ends))
        start = std::max(start, ends[static_cast<std::size_t>(wait)]);
    return start;
  }
  void add(const ProgramOp& op, Seconds end) {
    streams[static_cast<std::size_t>(op.stream)] = end;
    ends.push_back(end);
    last = std::max(last, end);
  }
};

class PipelineWalk {
 public:
  PipelineWalk(const Program& program, const std::vector<TimedSegment>& segments,
               CollectiveTimes& times)
      : program_(program), segments_(segments), times_(times), walked_(program.stages.size()) {}

  Seconds run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t stage = 0; stage < walked_.size(); ++stage) moves |= advance(stage);
    }
    Seconds last;
    for (const WalkedStage& stage : walked_) last = std::max(last, stage.last);
    return last;
  }

 private:
  using Message = std::tuple<int, int, std::int32_t>;  // from, to, tag

  /// Up to a message that was not sent yet; false where it stands already.
  bool advance(std::size_t number) {
    const RankProgram& stage = program_.stages[number];
    WalkedStage& walked = walked_[number];
    const std::size_t before = walked.ends.size();
    for (std::size_t at = before; at < stage.ops.size(); ++at) {
      const ProgramOp& op = stage.ops[at];
      Seconds start = walked.ready_for(op);
      if (op.kind == OpKind::recv) {
        const auto arrival = arrivals_.find({op.peer_stage, stage.stage, op.tag});
        if (arrival == arrivals_.end()) return at > before;
        start = std::max(start, arrival->second);
      }
      walked.add(op, start + duration_of(op, stage.stage));
      if (op.kind == OpKind::send)
        arrivals_[{stage.stage, op.peer_stage, op.tag}] = walked.ends.back();
    }
    return walked.ends.size() > before;
  }

  Seconds duration_of(const ProgramOp& op, int stage) {
    if (op.kind == OpKind::kernels)
      return segments_[static_cast<std::size_t>(op.segment.index())].duration;
    const int rank = rank_of({.pipeline = stage}, program_.layout);
    if (op.kind == OpKind::send) return times_.message(op, rank, program_);
    return is_collective(op.kind) ? times_.alone(op, rank, program_) : Seconds(0);
  }

  const Program& program_;
  const std::vector<TimedSegment>& segments_;
  CollectiveTimes& times_;
  std::vector<WalkedStage> walked_;
  std::map<Message, Seconds> arrivals_;  ///< at the earliest
};

}  // namespace

Seconds walked_pipeline(const Program& program, const std::vector<TimedSegment>& segments,
                        CollectiveTimes& times) {
  return PipelineWalk(program, segments, times).run();
}

StageEnds walked_stage(const Program& program, const RankProgram& stage, int rank,
                       const std::vector<TimedSegment>& segments, Seconds first_pass,
                       CollectiveTimes& times) {
  std::array<Seconds, kStreamCount> streams{};
  std::vector<Seconds> ends;
  ends.reserve(stage.ops.size());
  StageEnds last;
  for (const ProgramOp& op : stage.ops) {
    Seconds& stream = streams[static_cast<std::size_t>(op.stream)];
    Seconds start = is_of_pass(op) ? std::max(stream, first_pass) : stream;
    for (const std::int32_t wait : op.waits)
      if (wait >= 0 && wait < std::ssize(ends))
        start = std::max(start, ends[static_cast<std::size_t>(wait)]);
    Seconds duration;
    if (op.kind == OpKind::kernels)
      duration = segments[static_cast<std::size_t>(op.segment.index())].duration;
    else if (is_collective(op.kind))
      duration = times.alone(op, rank, program);
    stream = start + duration;
    ends.push_back(stream);
    if (is_of_pass(op)) last.last_pass = std::max(last.last_pass, stream);
    last.all = std::max(last.all, stream);
  }
  return last;
}

}  // namespace tessera
