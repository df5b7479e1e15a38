#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/precision.h"
#include "hw/units/quantity.h"
#include "workloads/program/attention.h"

namespace tessera {

/// What a kernel does, as far as its speed depends on it. The predictor has one model per kind.
enum class KernelKind : std::uint8_t {
  gemm,          ///< one matrix product, weights shared by the batch (nn.Linear, addmm)
  batched_gemm,  ///< torch.bmm / baddbmm
  elementwise,   ///< pointwise over contiguous tensors; also residual adds, dropout, activations,
                 ///< optimizer arithmetic
  copy,     ///< pointwise with strided or broadcast operands: contiguous(), clone, cat, adding or
            ///< applying a mask
  fill,     ///< writes only (zero_, 0-d constants)
  softmax,  ///< row-wise, forward or backward
  layer_norm,    ///< row-wise, forward or backward (grad_input, gamma/beta)
  reduction,     ///< column or row sums, max, norms
  gather,        ///< embedding forward
  scatter,       ///< embedding backward, index_put
  multi_tensor,  ///< apex / foreach passes over lists of tensors: optimizer, clip-norm, scaling
  convolution,   ///< 2-D convolution with all that the library launches for it
                 ///< (workloads/program/convolution.h)
  attention,     ///< fused scaled-dot-product attention (workloads/program/attention.h)
  grouped_gemm,  ///< one product per expert in one launch, of unequal numbers of rows
};

/// Memory order of the operands of a row-major product out[m,n] = A[m,k] * B[k,n].
/// A linear operator with W of [out,in] runs tn forward (m = tokens, n = out, k = in), nn for the
/// data gradient (m = tokens, n = in, k = out) and nt for the weight gradient (m = out, n = in, k =
/// tokens); Conv1D with W of [in,out] runs nn, tn and nt (m = in, n = out, k = tokens).
enum class GemmLayout : std::uint8_t {
  tn,  ///< B stored as [n,k]
  nn,  ///< B stored as [k,n]
  nt,  ///< A stored as [k,m], B as [k,n]
};

/// What a convolution has beyond the sizes of its matrix product; all 0 for other kernels.
struct ConvolutionGeometry {
  std::int32_t window = 0;  ///< height and width of the filter
  std::int32_t stride = 0;
  std::int32_t out_height = 0, out_width = 0;  ///< of one output image

  auto operator<=>(const ConvolutionGeometry&) const = default;
};

/// One CUDA kernel launch: shape, arithmetic and compulsory HBM traffic (each operand once). Equal
/// kernels take equal time.
struct Kernel {
  KernelKind kind = KernelKind::elementwise;
  Precision precision = Precision::fp32;  ///< products: of the arithmetic; others: of the tensors
  GemmLayout layout = GemmLayout::tn;
  bool bias = false;                 ///< GEMM with a bias epilogue
  bool strided = false;              ///< a loop that finds its elements one by one, by divisions
                                     ///< over the dimensions (PyTorch's for operands in any order)
  std::int64_t batch = 1;            ///< independent products (gemm: 1; convolution: its groups)
  std::int64_t m = 0, n = 0, k = 0;  ///< out[m,n], contraction over k; 0 for the other kinds
  std::int64_t rows = 0, cols = 0;   ///< elements = rows * cols of the larger operand; softmax and
                                     ///< norms reduce over cols
  ConvolutionGeometry convolution;   ///< m, n, k are then those of a group's implicit product
  AttentionCall attention;           ///< of the kind attention
  /// Of the kind grouped_gemm: rows (tn, nn) or contraction (nt) of each group's product; they sum
  /// to m, or to k.
  std::vector<std::int64_t> group_sizes;
  Flops flops;  ///< GEMM, convolution: 2*batch*m*n*k; others: arithmetic, small
  Bytes bytes_read;
  Bytes bytes_written;
  /// Read once more of a strided or broadcast operand where the last-level cache does not hold
  /// `reuse_footprint` from one use to the next; not part of `bytes()`.
  Bytes bytes_refetched;
  Bytes reuse_footprint;

  auto operator<=>(const Kernel&) const = default;
  Bytes bytes() const { return bytes_read + bytes_written; }
};

/// A kernel with the name under which tables and traces show it ("attention.scores").
struct KernelLaunch {
  Kernel kernel;
  std::string name;
  bool recomputed = false;  ///< repeats what forward did
};

}  // namespace tessera
