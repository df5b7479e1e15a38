#pragma once

#include "sim/longrun/checkpoint_cost.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// `timed` with the write of a checkpoint beside the step: from the step's start on the host of
/// every GPU sends `per_gpu` out of the node. The hosts of replicas that write nothing send as
/// well: a step waits for its slowest replica, so that they change nothing.
TimedProgram with_checkpoint_writes(TimedProgram timed, Bytes per_gpu);

/// What of a writer's part leaves its node in a step that takes `step` alone.
Bytes written_in_step(const CheckpointCost& cost, Seconds step);

/// Time of training over that without, while a checkpoint is written; from the times of a step
/// without and with the write beside it. At least 1.
double write_slowdown(const CheckpointCost& cost, Seconds step, Seconds with_write);

}  // namespace tessera
