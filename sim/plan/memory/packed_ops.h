#pragma once

#include "sim/scenario/memory_settings.h"
#include "workloads/memory/stage_ops.h"

namespace tessera {

/// `stage` where tensors wait for backward as one bit per element (masks, and what backward reads
/// the sign of alone) or, with `eight_bit`, as 8: a kernel packs each behind its last use in
/// forward, another unpacks it ahead of its first one in backward. What saves less than a mebibyte
/// stays. Unchanged for `as_it_is`.
StageOps with_packed_tensors(const StageOps& stage, ActivationPacking packing);

}  // namespace tessera
