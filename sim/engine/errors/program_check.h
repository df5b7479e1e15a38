#pragma once

#include "sim/plan/timed_program.h"

namespace tessera {

/// Throws InputError with everything about `timed` that the engine cannot run: sizes that do not
/// fit together, references to what does not exist, times that are not finite or negative, tags
/// used twice, collectives whose members disagree on the bytes. After it only waiting without end
/// can go wrong (deadlock_error.h).
void check_program(const TimedProgram& timed);

}  // namespace tessera
