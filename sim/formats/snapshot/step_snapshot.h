#pragma once

#include "sim/formats/snapshot/memory_snapshot.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// What torch.cuda.memory would have recorded of a GPU of `stage` over one step: what it holds for
/// the whole step first, then every tensor in the order of the compute stream. Blocks are cut and
/// kept as the caching allocator does it. Streams are one, and stacks are names of operators.
MemorySnapshot snapshot_of_step(const TimedProgram& timed, int stage);

/// The stage whose GPUs need most memory for tensors; the first of several.
int fullest_stage(const TimedProgram& timed);

}  // namespace tessera
