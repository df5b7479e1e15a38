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

/// Reduces gradients beside the passes.
bool reduces(const ProgramOp& op);

/// What a walk through a stage's ops takes for granted. Both references must outlive it.
struct StageWalkSetting {
  const std::vector<Segment>& segments;
  const OpTime& time;
  bool single_queue = false;   ///< all streams share one hardware queue
  BytesPerSecond copies = {};  ///< to and from host memory; 0: copies take no time
  Bytes limit = {};            ///< of memory; 0: none
  Bytes held = {};             ///< all the time
};

/// By op: ahead of which it counts in memory. Gathers where they start at the earliest, reductions
/// of gradients and what follows them on their stream where they end, as in walked_time(): what
/// they free is there until then. Others are their own place.
std::vector<std::size_t> places_in_memory(const RankProgram& stage,
                                          const StageWalkSetting& setting);

/// When all ops have ended, each behind its stream and what it waits for. Kernels and collectives
/// beside each other take longer as the engine has it (device_load.h), all else as long as alone.
/// Under a limit kernels wait for room until collectives have freed theirs; where none will, they
/// do not.
Seconds walked_time(const RankProgram& stage, const StageWalkSetting& setting);

/// Gathers of parameters and reductions of gradients beside the passes of `chunk`, as its first
/// micro-batch has them. What only another one does (reductions of gradients that the last one
/// completes) is left out, as all share a plan.
std::vector<StageTransfer> transfers_beside(const RankProgram& stage, const ChunkMemoryPlan& chunk,
                                            const TimedProgram& timed);

}  // namespace tessera
