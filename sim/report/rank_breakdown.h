#pragma once

#include "sim/report/time_category.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// Time in which the kernels of a segment really ran in `record`; the rest of the record is waiting
/// for the host, which launches them one by one.
Seconds busy_time(const OpRecord& record, const TimedSegment& segment);

/// Gives every instant of the step to one category: what the compute stream of `rank` ran, or why
/// it ran nothing. A gap is walked backwards from the kernel that ends it, along the ops that held
/// that kernel up.
TimeBreakdown break_down(const TimedProgram& timed, const TimelineIndex& index, int rank,
                         Seconds step_time);

}  // namespace tessera
