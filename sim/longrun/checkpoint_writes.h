#pragma once

#include "sim/longrun/checkpoint_cost.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// `timed` with a storage of `bandwidth` for the whole job behind the fabric, where that has room
/// for it: as many ports as nodes whose NICs carry that bandwidth, behind which all writes share
/// one link. Fabrics of a fixed size (torus, graph) have no room: there writes go from the NICs
/// straight into the storage. 0: no storage, writes end behind the NICs.
TimedProgram with_storage(TimedProgram timed, BytesPerSecond bandwidth);

/// `timed` with the write of a checkpoint beside the step: from the step's start on the nodes of
/// the replicas that write send `bytes` of the job to the storage, evenly over their GPUs' NICs.
TimedProgram with_checkpoint_writes(TimedProgram timed, Bytes bytes);

/// The same without the step.
TimedProgram checkpoint_write_alone(TimedProgram timed, Bytes bytes);

/// What of the job's checkpoint leaves the nodes in a step that takes `step` alone.
Bytes written_in_step(const CheckpointCost& cost, Seconds step);

/// Time of training over that without, while a checkpoint is written; from the times of a step
/// without and with the write beside it. At least 1.
double write_slowdown(const CheckpointCost& cost, Seconds step, Seconds with_write);

}  // namespace tessera
