#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "sim/remat/stage_plan.h"

namespace tessera::remat {

/// What a stage plan costs, by the exact replay.
struct Evaluation {
  Nanoseconds time = 0;
  ByteCount peak = 0;  ///< with static bytes
  ByteCount host_peak = 0;
};

/// Turns stage plans into schedules and replays them; keeps its buffers from call to call.
class PlanEvaluator {
 public:
  static constexpr Nanoseconds kNoTime = std::numeric_limits<Nanoseconds>::max();

  /// `budget` with static bytes: what copies may use to start early and end late.
  PlanEvaluator(const Graph& graph, const std::optional<HostLink>& link, ByteCount budget)
      : graph_(graph), link_(link), budget_(budget), writer_(graph), calendar_(graph) {}

  /// Sets the windows of the copies of `plan`, unless its copies on demand exceed the budget
  /// already. Where even a plan whose copies cost nothing would take `to_beat` or longer, some time
  /// is returned that is no less.
  Evaluation evaluate(StagePlan& plan, Nanoseconds to_beat = kNoTime) {
    for (Run& run : plan.runs) {
      run.copy_from = run.first;
      run.hold_to = run.last;
    }
    writer_.write(plan, schedule_);
    ReplayResult result = replay(graph_, schedule_, link_, &stage_peaks_);
    const bool may_win = graph_.base_time() + result.recompute < to_beat;
    if (result.copied > 0 && result.peak <= budget_ && may_win) {
      const ReplayResult on_demand = result;
      calendar_.fit(plan, *link_, budget_, stage_peaks_);
      writer_.write(plan, scratch_);
      result = replay(graph_, scratch_, link_);
      if (result.peak <= budget_ && result.time <= on_demand.time) {
        schedule_.swap(scratch_);
      } else {
        result = on_demand;
      }
    }
    return {result.time, result.peak, result.host_peak};
  }

  /// Of the last plan evaluated.
  const Schedule& schedule() const { return schedule_; }
  /// Peaks by stage of the last plan with its copies on demand, with static bytes.
  const std::vector<ByteCount>& stage_peaks() const { return stage_peaks_; }

 private:
  const Graph& graph_;
  const std::optional<HostLink>& link_;
  ByteCount budget_;
  ScheduleWriter writer_;
  CopyCalendar calendar_;
  Schedule schedule_, scratch_;
  std::vector<ByteCount> stage_peaks_;
};

}  // namespace tessera::remat
