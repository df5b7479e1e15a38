#include "workloads/graph/strided_loop.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

/// What device memory hands out at once. Source: CUDA C++ Programming Guide, "Device Memory
/// Accesses" (32-byte transactions).
constexpr std::int64_t kSectorBytes = 32;

/// Sign of "dimension `a` is walked slower than `b`"; 0 where no operand tells.
int compare(const std::vector<StridedShape>& operands, std::size_t a, std::size_t b) {
  for (const StridedShape& operand : operands) {
    const std::int64_t stride_a = operand.strides()[a];
    const std::int64_t stride_b = operand.strides()[b];
    if (stride_a == 0 || stride_b == 0) continue;
    if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
    if (operand.sizes()[a] > operand.sizes()[b]) return 1;
  }
  return 0;
}

/// Bytes of the sectors that `elements` distinct elements lie in, `stride` elements apart.
std::int64_t sector_bytes(std::int64_t elements, std::int64_t stride, std::int64_t element_bytes) {
  return elements * std::clamp(stride * element_bytes, element_bytes, kSectorBytes);
}

}  // namespace

StridedShape broadcast_to(const StridedShape& operand, const Sizes& sizes) {
  assert(sizes.size() >= operand.rank());
  const std::size_t added = sizes.size() - operand.rank();
  Sizes strides(sizes.size(), 0);
  for (std::size_t d = 0; d < operand.rank(); ++d) {
    const bool repeated = operand.sizes()[d] == 1 && sizes[added + d] != 1;
    strides[added + d] = repeated ? 0 : operand.strides()[d];
  }
  return {sizes, strides};
}

std::vector<std::size_t> loop_order(const std::vector<StridedShape>& operands) {
  std::vector<std::size_t> order(operands.front().rank());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t moved = i;
    for (std::size_t other = i; other-- > 0;) {
      const int sign = compare(operands, order[other], order[moved]);
      if (sign < 0) break;
      if (sign == 0) continue;
      std::swap(order[other], order[moved]);
      moved = other;
    }
  }
  return order;
}

StridedShape pointwise_output(const std::vector<StridedShape>& operands) {
  const Sizes& sizes = operands.front().sizes();
  Sizes strides(sizes.size(), 1);
  std::int64_t next = 1;
  for (const std::size_t d : loop_order(operands)) {
    strides[d] = next;
    next *= sizes[d];
  }
  return {sizes, strides};
}

OperandReuse operand_reuse(const StridedShape& operand, const std::vector<std::size_t>& order,
                           std::int64_t element_bytes) {
  if (operand.distinct_elements() == 1) return {};  // stays in a register
  std::int64_t outer = operand.elements();          // iterations of the dimensions not yet walked
  std::int64_t distinct = 1;
  std::int64_t nearest = operand.elements();  // smallest stride walked so far
  bool innermost = true;
  OperandReuse reuse;
  for (const std::size_t d : order) {
    const std::int64_t size = operand.sizes()[d];
    const std::int64_t stride = operand.strides()[d];
    if (size == 1) continue;
    const std::int64_t before = sector_bytes(distinct, nearest, element_bytes);
    const std::int64_t read_before = before * outer;
    outer /= size;
    if (stride != 0) {
      distinct *= size;
      nearest = std::min(nearest, stride);
    }
    const std::int64_t read_now = sector_bytes(distinct, nearest, element_bytes) * outer;
    const std::int64_t saved = read_before - read_now;
    if (std::exchange(innermost, false) || saved <= 0) continue;  // neighbouring threads share
    reuse.refetched =
        before == reuse.footprint.value() ? reuse.refetched + Bytes(saved) : Bytes(saved);
    reuse.footprint = Bytes(before);
  }
  return reuse;
}

}  // namespace tessera
