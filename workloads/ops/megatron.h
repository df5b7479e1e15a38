#pragma once

#include <optional>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Operators of Megatron-Core r0.5.0 that plain PyTorch does not have: tensor-parallel linears and
// losses, and kernels fused by its JIT. Layout [s, b, h]; `tensor` = size of the tensor-parallel
// group.

/// Sums `x` over the tensor-parallel group and waits; nothing for a group of one.
void tensor_all_reduce(Tape& tape, const std::string& name, const Tensor& x, int tensor);

// With sequence parallelism, tensors between split layers are [s / tensor, b, h]: parts of the
// sequence. Source: Megatron core/tensor_parallel/mappings.py; Korthikanti et al., 2022.

/// All parts of `x`; backward reduce-scatters.
Tensor gather_sequence(Tape& tape, const std::string& name, const Tensor& x, int tensor);
/// This rank's part of the sum of `x` over the tensor-parallel group; backward gathers.
Tensor reduce_scatter_sequence(Tape& tape, const std::string& name, const Tensor& x, int tensor);
/// This rank's part of what all ranks hold: a copy; backward gathers.
Tensor split_sequence(Tape& tape, const std::string& name, const Tensor& x, int tensor);

/// Ranks over which a weight is split, and how they work together.
struct TensorSplit {
  int tensor = 1;
  int sequence_parts = 1;  ///< > 1: between layers a rank holds a part of the sequence
  bool overlap_sum =
      true;                ///< of a column-split layer's data gradients, beside the weight gradient
  bool in_chunks = false;  ///< parts of the sequence travel beside products (LinearLayer)
  bool own_rows_first = false;  ///< likewise
  bool keeps_gathered = false;  ///< likewise
};

/// The weight's columns are split: `out` is this rank's share, the bias (if any) in the product's
/// epilogue. Backward: data gradient, its all-reduce beside the weight gradient, then a wait.
/// Source: Megatron core/tensor_parallel/layers.py,
/// LinearWithGradAccumulationAndAsyncCommunication. Without `overlap_sum` the all-reduce is that of
/// copy_to_tensor_model_parallel_region's backward, behind both products: Megatron before the end
/// of 2021 (megatron/mpu/layers.py).
Tensor column_parallel_linear(Tape& tape, const std::string& name, const Tensor& x,
                              const Tensor& weight, const TensorSplit& split,
                              const std::optional<Tensor>& bias = std::nullopt);
/// The weight's rows are split: the partial products are all-reduced, or reduce-scattered into
/// parts of the sequence. No bias.
Tensor row_parallel_linear(Tape& tape, const std::string& name, const Tensor& x,
                           const Tensor& weight, const TensorSplit& split);

/// torch.baddbmm: the product times a number; beta = 0, or 1 with a `bias` [batch, 1, n] without
/// gradient, which a kernel copies to every row of the output (e) for the product to read (e).
/// Backward: two products and two multiplications by that number. Saves both operands.
/// Source: PyTorch aten/src/ATen/native/cuda/Blas.cpp, baddbmm_out_cuda_impl.
Tensor scaled_bmm(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                  const std::optional<Tensor>& bias = std::nullopt);

/// residual + dropout(x + bias) in one kernel: 13 bytes per element (fp32); backward: masked_scale
/// and a column sum. Saves the mask.
Tensor bias_dropout_add(Tape& tape, const std::string& name, const Tensor& x, const Tensor& bias,
                        const Tensor& residual, double probability);

/// gelu(x + bias) in one kernel: 2e; backward: 3e and a column sum. Saves x.
Tensor bias_gelu(Tape& tape, const std::string& name, const Tensor& x, const Tensor& bias);

/// Rows of this rank's part of the table; masked and all-reduced where the table is split, or left
/// as this rank's share of the sum where it is not `summed`.
Tensor vocab_parallel_embedding(Tape& tape, const std::string& name, const Tensor& table,
                                const Tensor& ids, int tensor, bool summed = true);

/// Loss per token over fp32 logits [s, b, V / tensor]. Forward: max, subtract into a new tensor
/// (from r0.6 on `in_place`), exp, sum, div in place = 32 bytes per logit, small kernels per token,
/// three all-reduces of one number per token. Backward in place on the saved softmax: 8 bytes per
/// logit. Source: Megatron core/tensor_parallel/cross_entropy.py.
Tensor vocab_parallel_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                                    const Tensor& labels, int tensor, bool in_place);

}  // namespace tessera
