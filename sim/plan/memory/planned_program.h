#pragma once

#include <vector>

#include "sim/plan/memory/planned_pass.h"

namespace tessera {

/// Which micro-batches of a chunk run `MemoryPasses::first`.
enum class GradientStore : std::uint8_t { never, first, every };

/// Puts `chunks`, the planned passes of the model chunks of `stage`, in the place of the forward
/// and backward passes of every micro-batch; empty ones leave its passes as they are. What a pass
/// does besides, such as gathering sharded parameters or reducing gradients, stays where it was
/// among the blocks; a gather comes earlier where a block that runs again needs it. `empty_segment`
/// has no kernels: ops that wait for more than two others are led by it.
RankProgram put_planned_passes(const RankProgram& stage, const std::vector<MemoryPasses>& chunks,
                               GradientStore store, SegmentId empty_segment,
                               const std::vector<Segment>& segments);

}  // namespace tessera
