#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "workloads/model_graph.h"
#include "workloads/parallel/stage_program.h"

namespace tessera {

/// A piece of memory of one micro-batch on one pipeline stage, from block to block.
struct StageTensor {
  std::string name;  ///< "layer 3.attention.qkv"
  Bytes bytes;       ///< as the allocator counts them
  TensorRole role = TensorRole::activation;
};

/// An operator at its place in the stage.
struct StageOp {
  const GraphOp* op = nullptr;  ///< of the model's graph
  int block = 0;                ///< in `ModelGraph::blocks`
  int layer = kNoLayer;
  std::vector<int> reads;   ///< positions in `StageOps::tensors`, without persistent ones
  std::vector<int> writes;  ///< likewise
  int bits = -1;            ///< of `reads`: GraphOp::bits; -1: none
};

/// A collective beside the operators of a pass, on the stream that gathers parameters and reduces
/// gradients, one behind the other. Layers are counted in the order of the pass; what belongs to
/// none between two of them (embedding, head) counts as one.
struct StageTransfer {
  PassPart part = PassPart::forward;
  int launched = 0;  ///< when all layers ahead of this one have ended
  int awaited = -1;  ///< by this layer; -1: by none
  GraphOp op;
};

/// Forward and backward pass of one micro-batch over a model chunk of a stage. Refers to the
/// model's graph.
struct StageOps {
  std::vector<StageOp> ops;  ///< forward, then backward, then what the schedule runs later of it
  int forward_ops = 0;
  int late_ops = 0;  ///< position of the first of these; where there are none, one past the last op
  std::vector<StageTensor> tensors;
  // Messages, as positions in `tensors`; -1: there is none.
  int received_input = -1, sent_output = -1;
  int received_gradient = -1, sent_gradient = -1;
  std::vector<StageTransfer> transfers;  ///< in order; stage_ops() knows none
  /// Operators that a plan added to the model's.
  std::shared_ptr<std::deque<GraphOp>> added;
};

/// `splits_backward`: weight gradients run later than the rest, as zero-bubble schedules do.
/// `keeps_sent`: what the chunk sent lives until its backward pass has ended.
StageOps stage_ops(const ModelGraph& graph, const StageBlocks& blocks, bool splits_backward,
                   bool keeps_sent);

}  // namespace tessera
