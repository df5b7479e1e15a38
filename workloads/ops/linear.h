#pragma once

#include <optional>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// How a linear operator stores its weight.
enum class WeightOrder : std::uint8_t {
  out_in,  ///< nn.Linear: [out, in]
  in_out,  ///< Hugging Face Conv1D: [in, out]
};

struct LinearLayer {
  WeightOrder order = WeightOrder::out_in;
  std::optional<Tensor> bias;    ///< [out], added in the product's epilogue
  int reduce_gradient_over = 1;  ///< tensor-parallel ranks whose data gradients are summed
  bool overlap_sum = true;       ///< beside the weight gradient, not behind it
  int gather_input_over = 1;     ///< tensor-parallel ranks that each hold a part of x's rows: x is
                                 ///< gathered for the product, and once more for the weight
                                 ///< gradient; the data gradient is reduce-scattered beside that
  int scatter_output_over = 1;   ///< tensor-parallel ranks over which y is summed, and each keeps a
                                 ///< part of the rows; its gradient is gathered. Without a bias
  bool in_chunks = false;        ///< the gather of x or of y's gradient, and the sum of y, go chunk
                                 ///< by chunk beside the product they belong to
  bool own_rows_first = false;   ///< of a gathered x or gradient of y the product of this rank's
                                 ///< rows runs beside the gather, those of the others behind it
  bool keeps_gathered = false;   ///< backward keeps the gathered x, and does not gather it again
  bool full_precision = false;   ///< not in FP8 or NVFP4 although the step's products are
};

/// y = x W (+ bias) for x [tokens, in]. Backward: data gradient, weight gradient, a column sum for
/// the bias. Saves x. In FP8 both operands of each product are cast first, once for both of their
/// uses (one kernel, reads e and writes 2 bytes per element), and the cast x is saved instead.
/// Where they are scaled by their own largest value, a kernel finds that first, x itself is saved,
/// and x and W are cast again in backward.
/// `in_chunks` is the ring exchange of Transformer Engine's userbuffers over t ranks: a chunk is a
/// t-th of the rows, and one is multiplied while the next is on its way, so that the layer takes
/// the longer of product and transfer, and one chunk of the other. In FP8 not for y's gradient.
/// `own_rows_first` makes two or three products of one: a rank's own rows, those before them, those
/// behind them. Ranks share a program: of more than two, the rows of others are two equal products.
/// Source: nanotron parallel/tensor_parallel/functional.py, _ColumnLinearAsyncCommunication and
/// _RowLinearAsyncCommunication.
/// Sources: PyTorch Linear.cpp; Megatron core/tensor_parallel/layers.py; Transformer Engine
/// comm_gemm_overlap.h; Micikevicius et al., "FP8
/// Formats for Deep Learning", 2022; torchao float8_linear.py.
Tensor linear_matrix(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                     const LinearLayer& layer);

}  // namespace tessera
