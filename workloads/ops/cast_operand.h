#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

// Operands of products in FP8 or NVFP4, which are cast from 16 bits ahead of them.

/// A matrix as the products of a linear layer read it: by rows in one product, by columns in
/// another.
struct Operand {
  Tensor rows;
  Tensor columns;
};

/// Ahead of a product: scales of blocks of the operands in the order in which cuBLAS reads them, a
/// kernel for each matrix that reads and writes a byte for each block, launched from the product's
/// call; nothing where a matrix has one scale. Weights' scales are rearranged for every product
/// anew. Source: Transformer Engine pytorch/csrc/extensions/gemm.cpp, swizzle_scaling_factors;
/// common/swizzle/swizzle.cu (recalled).
void order_scales(Tape& tape, const std::string& name, const std::vector<Tensor>& operands);

/// Rows of a matrix that are cast one after the other, each with a scale of its own; none: all at
/// once.
using CastParts = std::vector<std::int64_t>;

/// Both orders of a gradient or an activation, in the format of the step's products. FP8: one
/// kernel; where the matrix is scaled by its own largest value, a kernel finds that first, under
/// Transformer Engine between a zero and the scale that follows from it. On Blackwell a product
/// reads a matrix in either order, and one copy is both (nvte_is_non_tn_fp8_gemm_supported;
/// recalled). NVFP4: a kernel finds the largest values, one casts the rows, one turns the columns
/// by a random Hadamard matrix and casts them. Sources: Transformer Engine
/// pytorch/csrc/quantizer.cpp, Float8CurrentScalingQuantizer and NVFP4Quantizer;
/// common/recipe/current_scaling.cu.
Operand cast_both_orders(Tape& tape, const std::string& name, const Tensor& matrix,
                         const CastParts& parts = {});

/// How a product reads a matrix.
struct Reading {
  bool casts = false;      ///< in the format of the step's products
  bool is_weight = false;  ///< copies are made with the first micro-batch of a step where the tape
                           ///< keeps them (workloads/parallel/pass_library.h); Transformer Engine
                           ///< pytorch/module/linear.py, is_first_microbatch
  bool casts_again = false;  ///< the matrix waits for backward, not its copy (Transformer Engine's
                             ///< save_original_input)
  CastParts parts = {};
};

/// A matrix that forward reads by rows and backward by columns: itself, or cast.
class SavedOperand {
 public:
  SavedOperand(Tape& tape, const std::string& name, const Tensor& matrix, const Reading& reading);
  const Tensor& rows() const { return cast_.rows; }
  /// Torchao keeps the matrix and casts it again in backward; else the copy that forward made.
  Tensor columns(Tape& tape) const {
    if (cast_.columns.storage.valid()) return cast_.columns;
    return turns_ ? turned(tape) : again(tape, "_transposed");
  }

 private:
  Tensor again(Tape& tape, const char* order) const;
  Tensor turned(Tape& tape) const;

  std::string name_;
  Tensor matrix_;
  Operand cast_;
  CastParts parts_;
  std::vector<Tensor> largest_;  ///< of each part
  bool turns_ = false;  ///< weights that are gathered in FP8 need no cast (torchao fsdp_utils.py,
                        ///< WeightWithDynamicFloat8CastTensor)
};

}  // namespace tessera
