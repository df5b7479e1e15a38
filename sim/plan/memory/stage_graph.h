#pragma once

#include <functional>
#include <vector>

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
    send_gradient
  };
  Kind kind = Kind::operators;
  int begin = 0, end = 0;  ///< in `StageOps::ops`
};

/// A stage's micro-batch as planners see it. Operator i of `graph` is group i; `tensors` are the
/// positions in `StageOps::tensors` of the graph's tensors.
struct StageGraph {
  remat::Graph graph;
  std::vector<OpGroup> groups;
  std::vector<int> tensors;
};

/// Time of an operator's kernel or collective.
using OpTime = std::function<Seconds(const GraphOp&)>;

/// What the other micro-batches of the stage take.
struct StageRoom {
  Bytes static_bytes;   ///< held all the time, the other micro-batches' included
  Bytes while_waiting;  ///< besides, between the forward and the backward pass
};

/// Collectives of backward, parameters' gradients and messages are never run again.
StageGraph stage_graph(const StageOps& stage, const std::string& name, const OpTime& time,
                       const StageRoom& room);

}  // namespace tessera
