#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/graph/strided_shape.h"

namespace tessera {

// How PyTorch's pointwise kernels walk over strided and broadcast operands, and what that costs.

/// `operand` over `sizes`: dimensions that broadcasting repeats have stride 0.
/// `sizes` has at least the operand's rank.
StridedShape broadcast_to(const StridedShape& operand, const Sizes& sizes);

/// Dimensions of the loop over `operands` (all of the same sizes), the fastest first: by the
/// strides of the first operand, ties and broadcast dimensions by those of the next. Source:
/// PyTorch aten/src/ATen/TensorIterator.cpp, `reorder_dimensions`.
std::vector<std::size_t> loop_order(const std::vector<StridedShape>& operands);

/// Memory order of the tensor that a pointwise operator makes: without gaps, in loop order.
StridedShape pointwise_output(const std::vector<StridedShape>& operands);

/// Traffic that an operand costs on top of reading each of its elements once, unless a cache keeps
/// `footprint` of it from one use to the next.
struct OperandReuse {
  Bytes refetched;
  Bytes footprint;
};

/// Reuse of `operand` in a loop over `order`: of elements that outer dimensions repeat (a mask
/// [b,1,s,s] that every head reads), and of memory sectors whose other elements an outer dimension
/// reads (heads that lie innermost while keys are walked). Zero where every sector is used once.
OperandReuse operand_reuse(const StridedShape& operand, const std::vector<std::size_t>& order,
                           std::int64_t element_bytes);

}  // namespace tessera
