#include "app/explain/stage_pace.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace tessera {
namespace {

/// By op: whether a pace that spares `spared` micro-batches slows it.
std::vector<bool> slowed_ops(const RankProgram& stage, int spared) {
  std::vector<bool> slowed(stage.ops.size(), spared == 0);
  std::int32_t last = 0;
  for (const PassSpan& pass : stage.passes) last = std::max(last, pass.micro_batch);
  for (const PassSpan& pass : stage.passes) {
    const bool fills = pass.part == PassPart::forward && pass.micro_batch < spared;
    const bool drains = pass.part != PassPart::forward && pass.micro_batch > last - spared;
    if (fills || drains) continue;
    for (std::int32_t op = pass.begin; op < pass.end; ++op)
      slowed[static_cast<std::size_t>(op)] = true;
  }
  return slowed;
}

/// Segments of a program at lower clocks, each made once.
class SlowSegments {
 public:
  SlowSegments(TimedProgram& timed, double clock) : timed_(timed), clock_(clock) {}

  SegmentId of(SegmentId segment) {
    const auto [entry, is_new] = slow_.try_emplace(segment.index());
    if (!is_new) return entry->second;
    const auto from = static_cast<std::size_t>(segment.index());
    entry->second = SegmentId(static_cast<std::int32_t>(timed_.segments.size()));
    TimedSegment slow = timed_.segments[from];
    slow.duration = slow.duration / clock_;
    for (Seconds& kernel : slow.kernel_durations) kernel = kernel / clock_;
    timed_.segments.push_back(std::move(slow));
    timed_.program.segments.push_back(Segment(timed_.program.segments[from]));
    return entry->second;
  }

 private:
  TimedProgram& timed_;
  double clock_;
  std::map<int, SegmentId> slow_;
};

void slow_down(RankProgram& stage, const StagePace& pace, TimedProgram& timed) {
  SlowSegments slow(timed, pace.clock);
  const std::vector<bool> slowed = slowed_ops(stage, pace.spared);
  for (std::size_t op = 0; op < stage.ops.size(); ++op) {
    if (slowed[op] && stage.ops[op].kind == OpKind::kernels)
      stage.ops[op].segment = slow.of(stage.ops[op].segment);
  }
}

}  // namespace

TimedProgram at_paces(TimedProgram timed, const std::vector<StagePace>& paces) {
  for (RankProgram& stage : timed.program.stages) {
    const StagePace& pace = paces[static_cast<std::size_t>(stage.stage)];
    if (pace.clock < 1) slow_down(stage, pace, timed);
  }
  return timed;
}

double slowed_share(const TimedProgram& timed, int stage, int spared) {
  Seconds all, slow;
  const RankProgram& program = timed.program.stages[static_cast<std::size_t>(stage)];
  const std::vector<bool> slowed = slowed_ops(program, spared);
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (program.ops[op].kind != OpKind::kernels) continue;
    const Seconds duration =
        timed.segments[static_cast<std::size_t>(program.ops[op].segment.index())].duration;
    all += duration;
    if (slowed[op]) slow += duration;
  }
  return all.value() > 0 ? slow / all : 0;
}

}  // namespace tessera
