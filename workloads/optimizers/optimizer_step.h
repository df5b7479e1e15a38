#pragma once

#include <cstdint>
#include <vector>

#include "workloads/graph/block.h"
#include "workloads/step_options.h"

namespace tessera {

/// What a rank does around forward and backward. Passes over lists of tensors are one kernel each,
/// of the total traffic.
struct OptimizerStep {
  std::vector<GraphOp> before_forward;  ///< zeroing gradients
  std::vector<GraphOp> average;         ///< scaling gradients ahead of their all-reduce
  std::vector<GraphOp> norm;            ///< gradient norm of this rank's parameters
  std::vector<GraphOp> update;          ///< clipping and the optimizer itself
};

/// torch.optim.AdamW with `foreach` (the default on CUDA) and clip_grad_norm_, fp32; gradients set
/// to None. 80 bytes per parameter, clipping 12.
OptimizerStep torch_adamw_step(const StepOptions& step, std::int64_t parameters);

/// Megatron r0.5.0: zeroed gradient buffer (4 bytes per parameter), division by the data-parallel
/// size even where that is 1 (8), norm (4), clipping (8), apex FusedAdam (28), fp32. The norm of
/// the first steps from random weights exceeds 1, so clipping always scales.
OptimizerStep megatron_adam_step(const StepOptions& step, std::int64_t parameters);

}  // namespace tessera
