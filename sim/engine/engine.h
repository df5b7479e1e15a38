#pragma once

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// Simulates one step: one host process per GPU, its streams as in-order device queues, collectives
/// and messages as flows over the topology's links, on SimGrid from when flows first fill a link.
/// SimGrid runs once in a process: std::logic_error where it is needed again
/// (sim/process/forked_call.h runs more). Throws InputError for a program that cannot run on the
/// topology, DeadlockError naming the blocked streams, and TimeLimitError where the program's
/// `simulation.time_limit` of wall-clock time is over.
Timeline simulate(const TimedProgram& program);

/// The same without Timeline::memory, which large jobs fill with more bytes than all the rest; the
/// peaks are there.
Timeline simulate_without_memory_samples(const TimedProgram& program);

/// Whether a step in this process has needed SimGrid.
bool simgrid_was_needed();

/// Throws the InputErrors of simulate(), and simulates nothing.
void check_simulation(const TimedProgram& program);

}  // namespace tessera
