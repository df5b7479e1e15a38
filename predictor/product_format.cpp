#include "predictor/product_format.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

// Scales: fp8_block one FP32 number per 1x128 activations and 128x128 weights; nvfp4 one byte per
// 16 elements; mxfp8 and mxfp4 one byte per 32.
constexpr std::array<ProductFormat, 5> kFormats{{{.name = "fp8", .scaled_by_largest = true},
                                                 {.name = "int8", .scaled_by_largest = true},
                                                 {.name = "fp8_block",
                                                  .activation_bytes = 1 + 4.0 / 128,
                                                  .weight_bytes = 1 + 4.0 / (128 * 128)},
                                                 {.name = "nvfp4",
                                                  .activation_bytes = 0.5 + 1.0 / 16,
                                                  .weight_bytes = 0.5 + 1.0 / 16,
                                                  .packed = true,
                                                  .bits = 4,
                                                  .scaled_by_largest = true},
                                                 {.name = "w4a8_mxfp4_mxfp8",
                                                  .activation_bytes = 1 + 1.0 / 32,
                                                  .weight_bytes = 0.5 + 1.0 / 32}}};

/// Log time for a halving of the width. Narrow operands take less power to move and multiply, their
/// sums in FP32 do not: at the power limit products become 2 / e^0.15 = 1.72 times as fast, not
/// twice. What keeps a tile from its peak (loads that wait, sums that are scaled) gains less still.
/// Of steps of 0.05 sixteen pairs of table and program choose these two, whichever is left out
/// (decision 109).
constexpr ProductLoss kLostPerHalving{.tiles = 0.30, .power = 0.15};

/// The same of kernels of many products: what H100 and GB200 chose with the slowdown of such
/// kernels beside it (decision 41); with the two above experts get worse.
constexpr double kLostByGroups = 0.25;

Bytes whole(double bytes) {
  return Bytes(static_cast<std::int64_t>(std::ceil(bytes)));
}

}  // namespace

ProductLoss ProductFormat::loss() const {
  const double halvings = std::log2(16.0 / bits);
  return {.tiles = kLostPerHalving.tiles * halvings, .power = kLostPerHalving.power * halvings};
}

ProductLoss ProductFormat::grouped_loss() const {
  const double lost = kLostByGroups * std::log2(16.0 / bits);
  return {.tiles = lost, .power = lost};
}

const ProductFormat* product_format(std::string_view name) {
  const auto* found = std::ranges::find(kFormats, name, &ProductFormat::name);
  return found == kFormats.end() ? nullptr : found;
}

GpuSpec gpu_in_format(const ProductFormat& format, GpuSpec gpu) {
  if (format.packed) gpu.fp8 = gpu.fp4 * 0.5;  // bytes of two elements each
  if (format.name == "int8") gpu.fp8 = gpu.int8;
  // Mixed formats run at the rate of the wider operand, on cores that know the narrower.
  if (format.name == "w4a8_mxfp4_mxfp8" && gpu.fp4.value() == 0) gpu.fp8 = FlopsPerSecond(0);
  return gpu;
}

Kernel product_in_format(const ProductFormat& format, std::int64_t m, std::int64_t n,
                         std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = Precision::fp8;
  kernel.m = m;
  kernel.n = n;
  kernel.k = format.packed ? std::max<std::int64_t>(1, k / 2) : k;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n),
             depth = static_cast<double>(k);
  kernel.flops = Flops(2 * rows * columns * static_cast<double>(kernel.k));
  kernel.bytes_read =
      whole(depth * (rows * format.activation_bytes + columns * format.weight_bytes));
  kernel.bytes_written = whole(2 * rows * columns);
  return kernel;
}

std::vector<Kernel> quantization_kernels(const ProductFormat& format, std::int64_t m,
                                         std::int64_t k) {
  std::vector<Kernel> kernels{quantization_kernel(format, m, k)};
  if (format.scaled_by_largest) kernels.insert(kernels.begin(), search_kernel(m, k));
  return kernels;
}

Kernel search_kernel(std::int64_t m, std::int64_t k) {
  Kernel kernel = quantization_kernel(kFormats.front(), m, k);
  kernel.bytes_written = Bytes(4 * m);
  return kernel;
}

Kernel quantization_kernel(const ProductFormat& format, std::int64_t m, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::elementwise;
  kernel.precision = Precision::bf16;
  kernel.rows = m;
  kernel.cols = k;
  const double elements = static_cast<double>(m) * static_cast<double>(k);
  kernel.flops = Flops(elements);
  kernel.bytes_read = whole(2 * elements);
  kernel.bytes_written = whole(format.activation_bytes * elements);
  return kernel;
}

}  // namespace tessera
