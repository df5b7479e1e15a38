#pragma once

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera::test {

/// The engine as one would write it at first: every stream and every host is a SimGrid actor that
/// sleeps, waits for semaphores and sends. Slow, but nothing in it is clever; the engine has to
/// agree with it. Records ops only, no memory. One call per process.
Timeline simulate_with_actor_per_stream(const TimedProgram& timed);

}  // namespace tessera::test
