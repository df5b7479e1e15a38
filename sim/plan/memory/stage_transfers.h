#pragma once

#include <cstddef>
#include <vector>

#include "sim/plan/memory/memory_plan.h"

namespace tessera {

/// Gathers parameters for a pass, or casts what is gathered.
bool gathers(const ProgramOp& op);

/// By op: ahead of which it starts at the earliest, itself for all but gathers with their casts.
/// Those are held up by what they wait for, by their stream, and in one hardware queue by the
/// kernels launched ahead of them, until the last of these begins.
std::vector<std::size_t> earliest_places(const RankProgram& stage, bool single_queue);

/// Gathers of parameters and reductions of gradients beside the passes of `chunk`, as its first
/// micro-batch has them. What only another one does (reductions of gradients that the last one
/// completes) is left out, as all share a plan.
std::vector<StageTransfer> transfers_beside(const RankProgram& stage, const ChunkMemoryPlan& chunk,
                                            const TimedProgram& timed);

}  // namespace tessera
