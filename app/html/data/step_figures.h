#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "app/html/step_page.h"
#include "sim/plan/timed_program.h"
#include "sim/report/step_report.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// Memory of `rank` by category over the step: `names`, `times_s`, and `bytes` by category and
/// time, of at most about `most` times, the fullest of neighbours. Of segments the highest use
/// counts.
nlohmann::ordered_json memory_by_category(const TimelineIndex& index, const TimedProgram& timed,
                                          int rank, std::size_t most);

/// When `rank` copies to the host and back, and when it computes again what it had dropped:
/// `begin_s`, `end_s` and `kind` (0 out, 1 in, 2 again); neighbours of one kind are one.
nlohmann::ordered_json memory_marks(const TimelineIndex& index, const TimedProgram& timed,
                                    int rank);

/// Memory of `rank` over the step, `times_s` and `bytes` of at most about `most` samples, and its
/// marks.
nlohmann::ordered_json memory_of_rank(const TimelineIndex& index, const TimedProgram& timed,
                                      int rank, std::size_t most);

/// The part "memory" of a step's page.
nlohmann::ordered_json memory_data(const StepReport& report, const TimedProgram& timed,
                                   const Timeline& timeline, const StepPageLimits& limits);

/// The distinct kernels under the roofline of the GPU: `peak` [FLOP/s], `bandwidth` [bytes/s], and
/// `points` of FLOP per byte, FLOP/s, kind and shape.
nlohmann::ordered_json kernel_roofline(const StepReport& report, const TimedProgram& timed);

}  // namespace tessera
