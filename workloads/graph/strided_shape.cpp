#include "workloads/graph/strided_shape.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

Sizes row_major_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

}  // namespace

StridedShape::StridedShape(Sizes sizes)
    : sizes_(std::move(sizes)), strides_(row_major_strides(sizes_)) {}

StridedShape::StridedShape(Sizes sizes, Sizes strides)
    : sizes_(std::move(sizes)), strides_(std::move(strides)) {
  assert(sizes_.size() == strides_.size());
}

std::int64_t StridedShape::elements() const {
  return std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t StridedShape::distinct_elements() const {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < rank(); ++d) count *= strides_[d] == 0 ? 1 : sizes_[d];
  return count;
}

bool StridedShape::contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t d = rank(); d-- > 0;) {
    if (sizes_[d] == 1) continue;
    if (strides_[d] != expected) return false;
    expected *= sizes_[d];
  }
  return true;
}

StridedShape StridedShape::permuted(const std::vector<int>& order) const {
  assert(order.size() == rank());
  StridedShape result;
  for (const int from : order) {
    result.sizes_.push_back(sizes_[static_cast<std::size_t>(from)]);
    result.strides_.push_back(strides_[static_cast<std::size_t>(from)]);
  }
  return result;
}

StridedShape StridedShape::narrowed(std::size_t dim, std::int64_t length) const {
  assert(length <= sizes_[dim]);
  StridedShape result = *this;
  result.sizes_[dim] = length;
  return result;
}

StridedShape StridedShape::expanded(const Sizes& sizes) const {
  assert(sizes.size() == rank());
  StridedShape result = *this;
  for (std::size_t d = 0; d < rank(); ++d) {
    if (sizes_[d] == sizes[d]) continue;
    assert(sizes_[d] == 1);
    result.sizes_[d] = sizes[d];
    result.strides_[d] = 0;
  }
  return result;
}

std::optional<StridedShape> StridedShape::viewed(const Sizes& sizes) const {
  Sizes strides(sizes.size(), 1);
  std::size_t view_dims = sizes.size();  // dimensions of the view that have no stride yet
  std::int64_t chunk_stride = strides_.back();
  std::int64_t chunk_elements = 1;
  std::int64_t view_elements = 1;
  for (std::size_t d = rank(); d-- > 0;) {
    chunk_elements *= sizes_[d];
    const bool chunk_goes_on =
        d > 0 && (sizes_[d - 1] == 1 || strides_[d - 1] == chunk_elements * chunk_stride);
    if (chunk_goes_on) continue;
    while (view_dims > 0 && (view_elements < chunk_elements || sizes[view_dims - 1] == 1)) {
      --view_dims;
      strides[view_dims] = view_elements * chunk_stride;
      view_elements *= sizes[view_dims];
    }
    if (view_elements != chunk_elements) return std::nullopt;
    if (d > 0) chunk_stride = strides_[d - 1];
    chunk_elements = view_elements = 1;
  }
  if (view_dims > 0) return std::nullopt;
  return StridedShape(sizes, strides);
}

StridedShape StridedShape::dense() const {
  std::vector<std::size_t> order(rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return strides_[a] > strides_[b]; });
  Sizes strides(rank(), 1);
  std::int64_t next = 1;
  for (std::size_t i = rank(); i-- > 0;) {
    strides[order[i]] = next;
    next *= sizes_[order[i]];
  }
  return {sizes_, strides};
}

}  // namespace tessera
