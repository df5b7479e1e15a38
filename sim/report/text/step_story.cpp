#include "sim/report/text/step_story.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "sim/report/analysis/rank_breakdown.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kTimeClassCount> kClassLabels{
    "compute", "contention",   "communication", "bubble",
    "host",    "memory_stall", "idle",          "unexplained"};

using PartTimes = std::map<std::pair<TimeClass, std::string>, Seconds>;

std::vector<ClassTime> listed(const PartTimes& parts) {
  std::vector<ClassTime> times;
  for (const auto& [key, time] : parts) times.push_back({key.first, key.second, time});
  return times;
}

template <class Entry>
void longest_first(std::vector<Entry>& entries) {
  std::ranges::stable_sort(entries, std::ranges::greater{}, &Entry::time);
}

/// Adds `time` of `rank` in a segment, by kind of kernel.
void add_kernels(const TimedProgram& timed, int rank, SegmentId id, Seconds time,
                 PartTimes& parts) {
  const TimedSegment& segment = timed.segment_of(rank, id);
  const std::vector<KernelLaunch>& kernels = timed.program.segment(id).kernels;
  if (segment.duration.value() <= 0 || kernels.empty()) {
    if (time > Seconds()) parts[{TimeClass::compute, "other"}] += time;
    return;
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::string kind(label_of(kernels[k].kernel.kind));
    parts[{TimeClass::compute, kind}] += time * (segment.kernel_durations[k] / segment.duration);
  }
}

/// Class and part of what is not compute.
std::pair<TimeClass, std::string> class_of(TimeCategory category) {
  const std::string label(label_of(category));
  if (label == "exposed_swap") return {TimeClass::memory_stall, ""};  // copies to and from the host
  if (label.starts_with("exposed_")) return {TimeClass::communication, label.substr(8)};
  if (category == TimeCategory::bubble) return {TimeClass::bubble, ""};
  if (category == TimeCategory::contention) return {TimeClass::contention, ""};
  return {category == TimeCategory::host ? TimeClass::host : TimeClass::idle, ""};
}

bool is_compute(TimeCategory category) {
  for (const Phase phase : {Phase::forward, Phase::loss, Phase::backward, Phase::gradient_reduction,
                            Phase::optimizer}) {
    if (category == compute_category(phase)) return true;
  }
  return false;
}

RankStory story_of_rank(const TimedProgram& timed, const TimelineIndex& index, int rank,
                        Seconds step_time) {
  PartTimes parts;
  for (const TimeClass always : {TimeClass::contention, TimeClass::bubble, TimeClass::host,
                                 TimeClass::memory_stall, TimeClass::idle})
    parts[{always, ""}] = Seconds();
  const TimeBreakdown breakdown = break_down(timed, index, rank, step_time);
  for (const TimeCategory category : time_categories()) {
    if (is_compute(category)) continue;
    const auto key = class_of(category);
    if (key.first == TimeClass::communication && breakdown[category] == Seconds()) continue;
    parts[key] += breakdown[category];
  }
  const std::vector<ProgramOp>& ops = index.program_of(rank).ops;
  for (const OpRecord& record : index.records_of(rank)) {
    const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
    if (op.kind != OpKind::kernels || op.stream != StreamKind::compute) continue;
    const Seconds alone = timed.duration_of(rank, record.op, op.segment);
    add_kernels(timed, rank, op.segment, busy_time(record, alone), parts);
  }
  for (const PressureRerun& rerun : index.reruns_of(rank))
    add_kernels(timed, rank, ops[static_cast<std::size_t>(rerun.op)].segment,
                rerun.end - rerun.start, parts);
  return {rank, index.position(rank).pipeline, {}, listed(parts)};
}

/// The critical path, summed up.
class PathSummary {
 public:
  PathSummary(const TimedProgram& timed, const TimelineIndex& index)
      : timed_(timed), index_(index) {}

  void add(const PathPiece& piece) {
    const Seconds time = piece.end - piece.begin;
    switch (piece.kind) {
      case PathPieceKind::kernels:
        return add_run(piece, time);
      case PathPieceKind::collective:
        parts_[{TimeClass::communication, std::string(label_of(op_of(piece).group))}] += time;
        return add_op(TimeClass::communication, collective_name(op_of(piece)), time);
      case PathPieceKind::message:
        parts_[{TimeClass::communication, "pipeline"}] += time;
        return add_op(TimeClass::communication,
                      "message " + std::string(label_of(op_of(piece).phase)), time);
      case PathPieceKind::copy:
        parts_[{TimeClass::memory_stall, ""}] += time;
        return add_op(TimeClass::memory_stall, std::string(label_of(op_of(piece).kind)), time);
      case PathPieceKind::memory:
        parts_[{TimeClass::memory_stall, ""}] += time;
        return add_op(TimeClass::memory_stall, "memory pressure", time);
      case PathPieceKind::host:
        parts_[{TimeClass::host, ""}] += time;
        return add_op(TimeClass::host, "launches of the host", time);
      case PathPieceKind::unexplained:
        parts_[{TimeClass::unexplained, ""}] += time;
        return add_op(TimeClass::unexplained, "unexplained", time);
    }
  }

  std::vector<ClassTime> times() const {
    std::vector<ClassTime> times = listed(parts_);
    longest_first(times);
    return times;
  }
  std::vector<PathOp> ops() const {
    std::vector<PathOp> ops;
    for (const auto& [key, op] : ops_) ops.push_back(op);
    longest_first(ops);
    return ops;
  }

 private:
  const ProgramOp& op_of(const PathPiece& piece) const {
    return index_.program_of(piece.rank).ops[static_cast<std::size_t>(piece.op)];
  }
  static std::string collective_name(const ProgramOp& op) {
    return std::string(label_of(op.kind)) + " " + std::string(label_of(op.group)) + " " +
           std::string(label_of(op.phase));
  }

  void add_run(const PathPiece& piece, Seconds time) {
    const SegmentId id = op_of(piece).segment;
    OpRecord run;
    run.end = time;
    const Seconds busy = busy_time(run, timed_.duration_of(piece.rank, piece.op, id));
    add_kernels(timed_, piece.rank, id, busy, parts_);
    if (time > busy) parts_[{TimeClass::contention, ""}] += time - busy;
    add_op(TimeClass::compute, timed_.program.segment(id).name, time);
  }

  void add_op(TimeClass time_class, const std::string& name, Seconds time) {
    PathOp& op = ops_[{time_class, name}];
    op.time_class = time_class;
    op.name = name;
    op.time += time;
    ++op.count;
  }

  const TimedProgram& timed_;
  const TimelineIndex& index_;
  PartTimes parts_;
  std::map<std::pair<TimeClass, std::string>, PathOp> ops_;
};

}  // namespace

std::string_view label_of(TimeClass time_class) {
  return kClassLabels[static_cast<std::size_t>(time_class)];
}

Seconds RankStory::in(TimeClass time_class) const {
  Seconds sum;
  for (const ClassTime& entry : times) {
    if (entry.time_class == time_class) sum += entry.time;
  }
  return sum;
}

StepStory tell_step(const TimedProgram& timed, const Timeline& timeline) {
  const TimelineIndex index(timed, timeline);
  StepStory story{.step_time = timeline.step_time};
  std::map<int, std::vector<int>> same;
  for (int rank = 0; rank < index.ranks(); ++rank) same[index.folding().of(rank)].push_back(rank);
  for (auto& [rank, ranks] : same) {
    story.ranks.push_back(story_of_rank(timed, index, rank, timeline.step_time));
    story.ranks.back().ranks = std::move(ranks);
  }
  story.path = critical_path(timed, timeline, index);
  PathSummary summary(timed, index);
  for (const PathPiece& piece : story.path) summary.add(piece);
  story.path_times = summary.times();
  story.path_ops = summary.ops();
  return story;
}

}  // namespace tessera
