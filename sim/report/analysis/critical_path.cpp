#include "sim/report/analysis/critical_path.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace tessera {
namespace {

constexpr std::int32_t kNoOp = -1;

/// Differences below this are rounding of the clock, not waiting.
constexpr Seconds kRounding = 1e-9_s;

PathPieceKind kind_of(const ProgramOp& op) {
  if (op.kind == OpKind::kernels) return PathPieceKind::kernels;
  return op.kind == OpKind::send ? PathPieceKind::message : PathPieceKind::copy;
}

/// Which collective of its group an op of a stage is, and back.
struct StageCollectives {
  std::vector<std::int32_t> sequence;                               ///< by op
  std::map<std::pair<GroupOfRank, std::int32_t>, std::int32_t> op;  ///< by group and sequence
};

StageCollectives collectives_of(const RankProgram& stage) {
  StageCollectives collectives;
  std::map<GroupOfRank, std::int32_t> next_in_group;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(stage.ops.size()); ++i) {
    const ProgramOp& op = stage.ops[static_cast<std::size_t>(i)];
    collectives.sequence.push_back(is_collective(op.kind) ? next_in_group[op.group_of_rank()]++
                                                          : kNoOp);
    if (is_collective(op.kind))
      collectives.op[{op.group_of_rank(), collectives.sequence.back()}] = i;
  }
  return collectives;
}

/// Walks from cause to cause, back in time.
class PathWalk {
 public:
  PathWalk(const TimedProgram& timed, const Timeline& timeline, const TimelineIndex& index)
      : timeline_(timeline), index_(index), single_queue_(timed.single_hardware_queue) {
    for (const RankProgram& stage : timed.program.stages)
      collectives_.push_back(collectives_of(stage));
    for (const MemoryStall& stall : timeline.memory_stalls)
      stalled_since_[{stall.rank, stall.op}] = stall.start;
  }

  std::vector<PathPiece> run() {
    if (timeline_.ops.empty()) return {};
    for (const auto& [rank, stands_for] : index_.simulated()) {
      for (const OpRecord& record : index_.records_of(rank)) {
        if (record.end <= now_) continue;
        at_ = {rank, record.op};
        now_ = record.end;
      }
    }
    // Every op is visited at most once; more steps would be a fault of the records.
    for (std::size_t step = 0; now_ > Seconds() && step <= timeline_.ops.size(); ++step) {
      if (!step_back()) break;
    }
    if (now_ > Seconds()) add(PathPieceKind::unexplained, Seconds());
    std::ranges::reverse(pieces_);
    return std::move(pieces_);
  }

 private:
  struct Place {
    std::int32_t rank = 0;
    std::int32_t op = 0;
  };

  const ProgramOp& program_op(Place place) const {
    return index_.program_of(place.rank).ops[static_cast<std::size_t>(place.op)];
  }
  const OpRecord& record(Place place) const {
    return index_.records_of(place.rank)[static_cast<std::size_t>(place.op)];
  }
  const StageOrder& order(Place place) const { return index_.order_of(place.rank); }
  const StageCollectives& collectives(Place place) const {
    return collectives_[static_cast<std::size_t>(index_.number_of(place.rank))];
  }

  /// A piece from `begin` to where the walk is; the walk goes there.
  void add(PathPieceKind kind, Seconds begin) {
    begin = std::clamp(begin, Seconds(), now_);
    if (begin < now_) pieces_.push_back({kind, at_.rank, at_.op, begin, now_});
    now_ = begin;
  }

  /// Takes the run of the op that ended at `now_`, then goes to what released it; false at the
  /// beginning of the step.
  bool step_back() {
    const ProgramOp& op = program_op(at_);
    if (op.kind == OpKind::recv && go_to_sender(op)) return true;
    if (is_collective(op.kind)) {
      add(PathPieceKind::collective, record(at_).transfer_start);
      go_to_last_member(op);
    } else if (op.kind != OpKind::recv) {
      add(kind_of(op), record(at_).start);
    }
    return go_to_cause();
  }

  /// False where the message had come before it was asked for.
  bool go_to_sender(const ProgramOp& recv) {
    const auto send = index_.send_of(at_.rank, recv);
    if (!send || send->record.end <= record(at_).start) return false;
    at_ = {send->rank, send->record.op};
    return true;
  }

  void go_to_last_member(const ProgramOp& op) {
    const std::int32_t last = record(at_).last_rank;
    if (last < 0 || last == at_.rank) return;
    const Place member{last, 0};
    const std::int32_t sequence = collectives(at_).sequence[static_cast<std::size_t>(at_.op)];
    const auto found = collectives(member).op.find({op.group_of_rank(), sequence});
    if (found != collectives(member).op.end()) at_ = {last, found->second};
  }

  /// From the start of an op to the end of what held it up.
  bool go_to_cause() {
    const auto op = static_cast<std::size_t>(at_.op);
    const auto stalled = stalled_since_.find({at_.rank, at_.op});
    if (stalled != stalled_since_.end()) add_stall(stalled->second);
    std::int32_t cause = later(order(at_).ahead_in_stream[op], kNoOp);
    for (const std::int32_t awaited : program_op(at_).waits) cause = later(cause, awaited);
    const Seconds released = cause == kNoOp ? Seconds() : record({at_.rank, cause}).end;
    const Seconds launched = launch_date();
    if (single_queue_ && now_ > std::max(released, launched) + kRounding && go_to_queue())
      return true;
    if (launched > released + kRounding || cause == kNoOp) return go_to_host(launched);
    if (now_ > released + kRounding) add(PathPieceKind::unexplained, released);
    at_.op = cause;
    return true;
  }

  /// A wait for memory: what ran again in it, and the waiting between.
  void add_stall(Seconds since) {
    const Place held_up = at_;
    const std::span<const PressureRerun> reruns = index_.reruns_of(at_.rank);
    auto behind = std::ranges::lower_bound(reruns, now_, {}, &PressureRerun::start);
    for (; behind != reruns.begin() && std::prev(behind)->start >= since; --behind) {
      add(PathPieceKind::memory, std::prev(behind)->end);
      at_.op = std::prev(behind)->op;
      add(PathPieceKind::kernels, std::prev(behind)->start);
      at_ = held_up;
    }
    add(PathPieceKind::memory, since);
  }

  Seconds launch_date() {
    std::vector<Seconds>& dates = launched_[at_.rank];
    if (dates.empty()) dates = index_.launch_dates_of(at_.rank);
    return dates[static_cast<std::size_t>(at_.op)];
  }

  /// From the start of an op to what started ahead of it in the hardware queue just then; of a
  /// segment, its last kernel did.
  bool go_to_queue() {
    const std::int32_t ahead = order(at_).ahead_in_queue[static_cast<std::size_t>(at_.op)];
    if (ahead == kNoOp) return false;
    at_.op = ahead;
    add(PathPieceKind::kernels, record(at_).start);
    return go_to_cause();
  }

  /// The host worked from the end of the op that it waited for last until it had launched this one.
  bool go_to_host(Seconds launched) {
    if (now_ > launched + kRounding) add(PathPieceKind::unexplained, launched);
    const std::int32_t sync = order(at_).last_sync[static_cast<std::size_t>(at_.op)];
    add(PathPieceKind::host, sync == kNoOp ? Seconds() : record({at_.rank, sync}).end);
    at_.op = sync;
    return sync != kNoOp;
  }

  /// Of two ops of this rank the one that ended later.
  std::int32_t later(std::int32_t a, std::int32_t b) const {
    if (a == kNoOp || b == kNoOp) return std::max(a, b);
    return record({at_.rank, b}).end > record({at_.rank, a}).end ? b : a;
  }

  const Timeline& timeline_;
  const TimelineIndex& index_;
  bool single_queue_;
  std::vector<StageCollectives> collectives_;              ///< by stage
  std::map<std::int32_t, std::vector<Seconds>> launched_;  ///< by rank that the path crosses
  std::map<std::pair<std::int32_t, std::int32_t>, Seconds> stalled_since_;  ///< by rank and op
  Place at_;
  Seconds now_;
  std::vector<PathPiece> pieces_;  ///< last one first
};

}  // namespace

std::vector<PathPiece> critical_path(const TimedProgram& timed, const Timeline& timeline,
                                     const TimelineIndex& index) {
  return PathWalk(timed, timeline, index).run();
}

}  // namespace tessera
