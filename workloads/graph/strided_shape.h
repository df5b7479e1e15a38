#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

using Sizes = std::vector<std::int64_t>;

/// Sizes and strides (in elements) of a tensor, as PyTorch keeps them. Whether a view is free or
/// needs a copy follows from the strides alone, so the copies that an eager framework launches
/// emerge from the model code.
class StridedShape {
 public:
  StridedShape() = default;
  /// Row-major without gaps. All sizes > 0.
  explicit StridedShape(Sizes sizes);
  StridedShape(Sizes sizes, Sizes strides);

  const Sizes& sizes() const { return sizes_; }
  const Sizes& strides() const { return strides_; }
  std::size_t rank() const { return sizes_.size(); }
  /// Size of dimension `from_end` counted from the last one (0 = last).
  std::int64_t last(std::size_t from_end = 0) const { return sizes_[rank() - 1 - from_end]; }
  std::int64_t elements() const;
  /// Elements that exist in memory: expanded dimensions (stride 0) count once.
  std::int64_t distinct_elements() const;
  bool contiguous() const;

  StridedShape permuted(const std::vector<int>& order) const;
  /// First `length` indices of `dim`.
  StridedShape narrowed(std::size_t dim, std::int64_t length) const;
  /// Dimensions of size 1 repeated to `sizes` at no cost.
  StridedShape expanded(const Sizes& sizes) const;
  /// The shape as `sizes` over the same memory; none where only a copy can give it.
  /// Source: PyTorch aten/src/ATen/TensorUtils.cpp, computeStride.
  std::optional<StridedShape> viewed(const Sizes& sizes) const;
  /// Same order of the dimensions in memory, without gaps: the output of a pointwise operator.
  StridedShape dense() const;

 private:
  Sizes sizes_;
  Sizes strides_;
};

}  // namespace tessera
