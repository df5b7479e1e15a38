#include "predictor/fp32/memory_model.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

// PyTorch keeps softmax rows of up to 1024 elements in one warp (softmax_warp_forward).
constexpr std::int64_t kWarpRow = 1024;

constexpr double kNormThreads = 128;  ///< 4 warps to a row, vectorized_layer_norm_kernel
constexpr double kSecondRead = 0.5;   ///< of one read and one write

/// Bytes of the rows that all SMs work on at a time.
double rows_at_hand(const MemoryShape& shape, const GpuTraits& gpu) {
  const double blocks = gpu.sms * gpu.threads / kNormThreads;
  const double row = (shape.bytes - shape.extra_bytes) / (2 * shape.rows);
  return std::min(blocks, shape.rows) * row;
}

}  // namespace

double slowdown_of_passes(const MemoryShape& shape, const GpuTraits& gpu,
                          const MemoryParameters<double>& p,
                          const std::array<double, kMemoryClasses>& by_rule) {
  if (shape.rows <= 0 || shape.memory_class != MemoryClass::layer_norm)
    return by_rule[static_cast<std::size_t>(shape.memory_class)];
  const double miss = l2_miss(rows_at_hand(shape, gpu), gpu, p);
  return by_rule[static_cast<std::size_t>(MemoryClass::elementwise)] +
         std::log1p(kSecondRead * miss);
}

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
