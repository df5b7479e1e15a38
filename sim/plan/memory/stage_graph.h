#pragma once

#include <functional>
#include <vector>

#include "sim/plan/device_load.h"
#include "sim/remat/graph.h"
#include "workloads/memory/stage_ops.h"

namespace tessera {

/// Operators that a planner can only run together: a product and the collective that sums it in
/// place, a chain that overwrites its tensor.
struct OpGroup {
  enum class Kind : std::uint8_t {
    operators,
    receive_input,
    send_output,
    other_micro_batches,  ///< between forward and backward, and before what runs later of that
    receive_gradient,
    send_gradient,
    launch_transfer,
    await_transfer
  };
  Kind kind = Kind::operators;
  int begin = 0, end = 0;  ///< in `StageOps::ops`
  int transfer = -1;       ///< of the last two kinds: in `StageOps::transfers`
};

/// A stage's micro-batch as planners see it. Operator i of `graph` is group i; `tensors` are the
/// positions in `StageOps::tensors` of the graph's tensors.
struct StageGraph {
  remat::Graph graph;
  std::vector<OpGroup> groups;
  std::vector<int> tensors;
};

/// What an operator's kernel or collective takes.
struct OpCost {
  Seconds time;
  Seconds moving = {};        ///< of that, over the GPU's own link to the host's side of the node
  BytesPerSecond rate = {};   ///< at which it does
  BytesPerSecond limit = {};  ///< of that link
  bool product = false;       ///< a kernel that keeps to multiprocessors (TimedSegment)
  DeviceLoad load = {};       ///< of a collective; nothing where kernels are not slowed
};
using OpTime = std::function<OpCost(const GraphOp&)>;

/// What the other micro-batches of the stage take.
struct StageRoom {
  Bytes static_bytes;          ///< held all the time, the other micro-batches' included
  Bytes while_waiting;         ///< besides, between the forward and the backward pass
  BytesPerSecond copies = {};  ///< at which a plan may copy to or from the host; 0: it does not
};

/// Collectives of backward, parameters' gradients and messages are never run again.
StageGraph stage_graph(const StageOps& stage, const std::string& name, const OpTime& time,
                       const StageRoom& room);

}  // namespace tessera
