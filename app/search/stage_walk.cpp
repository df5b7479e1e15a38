#include "app/search/stage_walk.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "app/search/hidden_collectives.h"

namespace tessera {
namespace {

bool is_of_pass(const ProgramOp& op) {
  return op.kind == OpKind::kernels && op.stream == StreamKind::compute && op.micro_batch >= 0;
}

/// Gathers parameters of a layer for a backward pass, or casts what is gathered.
bool gathers_for_backward(const ProgramOp& op) {
  const bool of_parameters = op.group == GroupKind::shard || op.group == GroupKind::expert_data;
  return of_parameters && op.layer >= 0 && op.phase != Phase::forward;
}

/// When something is done at the earliest, and how much of the chain of ops that takes until then
/// are kernels of the compute stream.
struct Date {
  Seconds at, kernels;
  bool operator<(const Date& other) const { return at < other.at; }
};

/// One stage, as far as it was walked: its ops in the order of their launch.
class WalkedStage {
 public:
  WalkedStage(const RankProgram& stage, LaunchOrder order) : stage_(stage), order_(order) {
    ends_.reserve(stage.ops.size());
  }

  std::size_t size() const { return ends_.size(); }
  Date last() const { return last_; }
  Date last_pass() const { return last_pass_; }

  /// When the next op can start, not before `earliest`.
  Date next_start(Seconds earliest) {
    const ProgramOp& op = stage_.ops[size()];
    begin_pass();
    const auto stream = static_cast<std::size_t>(op.stream);
    const Date begin{earliest, Seconds(0)};
    if (moves(op)) return std::max(begin, started_pass_.of(stream));
    const Date free = is_copy(op.kind) ? now_.streams[stream] : now_.of(stream);
    Date start = std::max({begin, free, busy_[stream]});
    for (const std::int32_t wait : op.waits)
      if (wait >= 0 && wait < std::ssize(ends_))
        start = std::max(start, ends_[static_cast<std::size_t>(wait)]);
    return start;
  }

  /// The next op starts then, takes `time`, but not less than until `arrival`, and has left the
  /// hardware queue after `queued`.
  void add(Date start, Seconds time, Seconds queued, Seconds arrival = Seconds(0)) {
    const ProgramOp& op = stage_.ops[size()];
    const auto stream = static_cast<std::size_t>(op.stream);
    const Date end = std::max(after(op, start, time), Date{arrival, Seconds(0)});
    busy_[stream] = after(op, busy_[stream], time);
    if (!moves(op)) {
      now_.streams[stream] = end;
      if (order_.single_queue && !is_copy(op.kind)) now_.turn = after(op, start, queued);
    }
    ends_.push_back(end);
    last_ = std::max(last_, end);
    if (is_of_pass(op)) last_pass_ = std::max(last_pass_, end);
  }

 private:
  struct Dates {
    std::array<Date, kStreamCount> streams{};
    Date turn;  ///< what was launched so far has left the hardware queue
    Date of(std::size_t stream) const { return std::max(streams[stream], turn); }
  };

  static Date after(const ProgramOp& op, Date start, Seconds time) {
    const bool counts = op.kind == OpKind::kernels && op.stream == StreamKind::compute;
    return {start.at + time, counts ? start.kernels + time : start.kernels};
  }

  bool moves(const ProgramOp& op) const { return order_.gathers_move && gathers_for_backward(op); }

  void begin_pass() {
    const auto op = static_cast<std::int32_t>(size());
    while (next_pass_ < stage_.passes.size() && stage_.passes[next_pass_].begin <= op) {
      started_pass_ = now_;
      ++next_pass_;
    }
  }

  const RankProgram& stage_;
  LaunchOrder order_;
  Dates now_, started_pass_;
  std::array<Date, kStreamCount> busy_{};  ///< with what was launched so far, in any order
  std::size_t next_pass_ = 0;
  std::vector<Date> ends_;
  Date last_, last_pass_;
};

/// Of ops of one rank in each stage.
class OpTimes {
 public:
  OpTimes(const Program& program, const std::vector<TimedSegment>& segments, CollectiveTimes& times)
      : program_(program), segments_(segments), times_(times) {}

  Seconds of(const ProgramOp& op, int rank) {
    if (op.kind == OpKind::kernels) return segment(op).duration;
    return is_collective(op.kind) ? times_.alone(op, rank, program_) : Seconds(0);
  }
  Seconds message(const ProgramOp& op, int rank) { return times_.message(op, rank, program_); }
  /// How long it is in the hardware queue once it has begun: kernels until the last of them does.
  Seconds queued(const ProgramOp& op) const {
    if (op.kind != OpKind::kernels) return Seconds(0);
    return segment(op).duration - segment(op).last_kernel();
  }

 private:
  const TimedSegment& segment(const ProgramOp& op) const {
    return segments_[static_cast<std::size_t>(op.segment.index())];
  }

  const Program& program_;
  const std::vector<TimedSegment>& segments_;
  CollectiveTimes& times_;
};

class PipelineWalk {
 public:
  PipelineWalk(const Program& program, const std::vector<TimedSegment>& segments, LaunchOrder order,
               CollectiveTimes& times)
      : program_(program), times_(program, segments, times) {
    for (const RankProgram& stage : program.stages) walked_.emplace_back(stage, order);
  }

  Seconds run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t stage = 0; stage < walked_.size(); ++stage) moves |= advance(stage);
    }
    Seconds last;
    for (const WalkedStage& stage : walked_) last = std::max(last, stage.last().at);
    return last;
  }

 private:
  using Message = std::tuple<int, int, std::int32_t>;  // from, to, tag

  /// Up to a message that was not sent yet; false where it stands already.
  bool advance(std::size_t number) {
    const RankProgram& stage = program_.stages[number];
    const int rank = rank_of({.pipeline = stage.stage}, program_.layout);
    WalkedStage& walked = walked_[number];
    const std::size_t before = walked.size();
    for (std::size_t at = before; at < stage.ops.size(); ++at) {
      const ProgramOp& op = stage.ops[at];
      Seconds arrival;
      if (op.kind == OpKind::recv) {
        const auto sent = arrivals_.find({op.peer_stage, stage.stage, op.tag});
        if (sent == arrivals_.end()) return at > before;
        arrival = sent->second;
      }
      const bool sends = op.kind == OpKind::send;
      const Seconds time = sends ? times_.message(op, rank) : times_.of(op, rank);
      const Date start = walked.next_start(Seconds(0));
      walked.add(start, time, times_.queued(op), arrival);
      if (sends) arrivals_[{stage.stage, op.peer_stage, op.tag}] = start.at + time;
    }
    return walked.size() > before;
  }

  const Program& program_;
  OpTimes times_;
  std::vector<WalkedStage> walked_;
  std::map<Message, Seconds> arrivals_;  ///< at the earliest
};

}  // namespace

Seconds walked_pipeline(const Program& program, const std::vector<TimedSegment>& segments,
                        LaunchOrder order, CollectiveTimes& times) {
  return PipelineWalk(program, segments, order, times).run();
}

Seconds walked_stage(const Program& program, const RankProgram& stage, int rank,
                     const std::vector<TimedSegment>& segments, StageSurroundings around,
                     LaunchOrder order, CollectiveTimes& times) {
  OpTimes op_times(program, segments, times);
  WalkedStage walked(stage, order);
  HiddenCollectives hidden;
  for (const ProgramOp& op : stage.ops) {
    const Date start = walked.next_start(is_of_pass(op) ? around.before : Seconds(0));
    const Seconds time = op_times.of(op, rank);
    walked.add(start, time, op_times.queued(op));
    if (is_collective(op.kind))
      hidden.add_collective(op.stream, time, times.load(op, rank, program));
    if (op.kind == OpKind::kernels && op.stream == StreamKind::compute)
      hidden.add_kernels(segments[static_cast<std::size_t>(op.segment.index())]);
  }
  const auto end = [&](Date date, Seconds behind) {
    const Seconds elsewhere = date.at - date.kernels + behind;
    return date.at + behind + hidden.least_delay(elsewhere);
  };
  return std::max(end(walked.last(), Seconds(0)), end(walked.last_pass(), around.behind));
}

}  // namespace tessera
