#pragma once

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// Simulates one step on SimGrid: one actor per GPU (its host process), its streams as in-order
/// device queues, collectives and messages as flows over the topology's links. One call per
/// process: SimGrid keeps one clock (sim/process/forked_call.h runs more). Throws InputError for a
/// program that cannot run on the topology, DeadlockError naming the blocked streams, and
/// TimeLimitError where the program's `simulation.time_limit` of wall-clock time is over.
Timeline simulate(const TimedProgram& program);

/// The same without Timeline::memory, which large jobs fill with more bytes than all the rest; the
/// peaks are there.
Timeline simulate_without_memory_samples(const TimedProgram& program);

/// Throws the InputErrors of simulate(), and simulates nothing.
void check_simulation(const TimedProgram& program);

}  // namespace tessera
