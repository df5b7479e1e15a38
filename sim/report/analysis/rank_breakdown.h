#pragma once

#include "sim/report/clock_tick.h"
#include "sim/report/time_category.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// What the kernels that ran in `record`, and take `alone` on the rank's GPU, were busy for; the
/// rest of the record is what collectives beside them, which share the GPU, add.
inline Seconds busy_time(const OpRecord& record, Seconds alone) {
  const Seconds run = record.end - record.start;
  return run - alone > kClockTick ? alone : run;
}

/// Gives every instant of the step to one category: what the compute stream of `rank` ran, or why
/// it ran nothing. A gap is walked backwards from the kernel that ends it, along the ops that held
/// that kernel up.
TimeBreakdown break_down(const TimedProgram& timed, const TimelineIndex& index, int rank,
                         Seconds step_time);

}  // namespace tessera
