#pragma once

#include "sim/plan/memory/planned_pass.h"

namespace tessera {

/// Puts `passes` in the place of the forward and backward passes of every micro-batch of `stage`.
/// Throws InputError where a pass holds what plans do not know: communication besides that of the
/// tensor-parallel group. `empty_segment` has no kernels: ops that wait for more than two others
/// are led by it.
void put_planned_passes(const MemoryPasses& passes, bool stores_first_gradients,
                        SegmentId empty_segment, RankProgram& stage);

}  // namespace tessera
