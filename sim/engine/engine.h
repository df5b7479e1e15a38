#pragma once

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// Simulates one step on SimGrid: one actor per GPU (its host process), its streams as in-order
/// device queues, collectives and messages as flows over the topology's links. One call per
/// process: SimGrid keeps one clock (sim/process/forked_call.h runs more). Throws InputError for a
/// program that cannot run on the topology and DeadlockError naming the blocked streams.
Timeline simulate(const TimedProgram& program);

}  // namespace tessera
