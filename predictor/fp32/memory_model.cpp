#include "predictor/fp32/memory_model.h"

#include <algorithm>

namespace tessera {
namespace {

// PyTorch keeps softmax rows of up to 1024 elements in one warp (softmax_warp_forward).
constexpr std::int64_t kWarpRow = 1024;

}  // namespace

MemoryShape memory_shape(const Kernel& kernel) {
  MemoryShape shape{.memory_class = memory_traits(kernel.kind).memory_class,
                    .bytes = static_cast<double>(kernel.bytes().value()),
                    .rows = static_cast<double>(kernel.rows),
                    .refetched = static_cast<double>(kernel.bytes_refetched.value()),
                    .reuse_footprint = static_cast<double>(kernel.reuse_footprint.value()),
                    .wide = kernel.cols > kWarpRow};
  if (shape.memory_class == MemoryClass::elementwise) return shape;
  const double one_pass = static_cast<double>(2 * element_bytes(kernel.precision)) *
                          static_cast<double>(kernel.rows) * static_cast<double>(kernel.cols);
  if (one_pass > 0) shape.extra_bytes = std::max(0.0, shape.bytes - one_pass);
  return shape;
}

}  // namespace tessera
