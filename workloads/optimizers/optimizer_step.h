#pragma once

#include <cstdint>
#include <vector>

#include "workloads/graph/block.h"
#include "workloads/memory/memory_bytes.h"
#include "workloads/step_options.h"

namespace tessera {

/// What a rank does around forward and backward. Passes over lists of tensors are one kernel each,
/// of the total traffic.
struct OptimizerStep {
  std::vector<GraphOp> before_forward;  ///< zeroing gradients
  std::vector<GraphOp> average;         ///< scaling gradients ahead of their all-reduce, and the
                                        ///< cast to the format that they are summed in
  std::vector<GraphOp> after_reduce;    ///< the cast back
  std::vector<GraphOp> unscale;  ///< of fp16: gradients in fp32, divided by the loss scale; the
                                 ///< host waits to hear whether any of them overflowed
  std::vector<GraphOp> norm;     ///< gradient norm of this rank's parameters
  std::vector<GraphOp> update;   ///< clipping and the optimizer itself
  std::vector<GraphOp> apply;    ///< of Muon: what follows when its matrices are orthogonal
};

/// What a rank updates.
struct UpdatedParameters {
  std::int64_t parameters = 0;
  std::int64_t summed = 0;    ///< parameters whose gradients it holds, takes the norm of and clips
  int tensors = 1;            ///< that these are in
  std::int64_t matrices = 0;  ///< of `parameters`, those that Muon updates; Adam the others
};

/// Adam, SGD with momentum, LAMB or LARS over `parameters` of one rank; the first two as the
/// framework profile runs them, the others as NVIDIA's fused kernels, which every framework uses.
/// Bytes per parameter in fp32: zeroed buffers 4, division by the data-parallel size 8, norm 4,
/// clipping 8, the fused update 28 or torch's foreach update 80 (SGD: 20, or 44). LAMB: norm of all
/// gradients 4, which takes the place of clipping, norms of the weights 4, the update 28, its norms
/// 4, the weights 12. LARS: norms of the weights 4 and of the gradients 4, the update 20. In 16 bit
/// gradients are those of `step.formats`; with master weights the update works on the fp32 copy,
/// and a cast (6) refreshes the model's. The norm of the first steps from random weights exceeds 1,
/// so clipping always scales. Sources: Megatron optimizer/optimizer.py, apex
/// csrc/multi_tensor_adam.cu and multi_tensor_lamb.cu, torch/optim/adamw.py, torch/optim/sgd.py,
/// MLPerf's multi_tensor_lars.
/// Muon: momentum 14 and the weights 10 of what it updates (in between it is made orthogonal:
/// parallel/muon_update.h), 28 of the rest.
/// With `per_tensor_updates` the norm, clipping, the cast and each line of an unfused Adam are a
/// launch for each tensor, and the host reads nothing unless `reads_norm` says so.
OptimizerStep optimizer_step(const StepOptions& step, const UpdatedParameters& updated);
OptimizerStep optimizer_step(const StepOptions& step, std::int64_t parameters);

/// Weights, gradients and optimizer states of a rank that holds `parameters`.
CategoryBytes state_bytes(const StepOptions& step, std::int64_t parameters);

/// Persistent bytes per parameter: weights, gradients, master copy and both moments (SGD, LARS and
/// Muon: one; the second moment that Adam keeps of Muon's other parameters is the caller's).
std::int64_t bytes_per_parameter(const StepOptions& step);

}  // namespace tessera
