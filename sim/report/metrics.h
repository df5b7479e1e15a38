#pragma once

#include "sim/plan/timed_program.h"
#include "sim/report/step_report.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// Measures a simulated step. Pure: equal arguments give equal reports, to the last bit. The
/// timeline must hold every op of every rank.
StepReport measure(const TimedProgram& timed, const Timeline& timeline);

}  // namespace tessera
