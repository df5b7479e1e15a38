#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hw/gpu.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// Log time by which products fall short of what 16-bit ones reach of the peak: where tiles set the
/// pace, and where the power limit does.
struct ProductLoss {
  double tiles = 0, power = 0;
};

/// A number format of products that servers use beside those of Precision: 8- or 4-bit operands
/// whose blocks share scales, and 8-bit operands that a call makes from 16-bit activations. Their
/// products run on the tensor cores of 8-bit numbers, so they count as fp8 products on a GPU that
/// does them at the format's own rate.
struct ProductFormat {
  std::string_view name;        ///< as measured files write it
  double activation_bytes = 1;  ///< an element with its share of the scales
  double weight_bytes = 1;
  bool packed = false;  ///< two elements a byte: the contraction counts half
  int bits = 8;         ///< of the operand that sets the rate
  /// Activations are scaled by their largest value, which is read off all of them first.
  bool scaled_by_largest = false;

  ProductLoss loss() const;
  /// Of many products in one kernel, as those of experts.
  ProductLoss grouped_loss() const;
};

/// fp8 and int8 (one scale for all), fp8_block, nvfp4, w4a8_mxfp4_mxfp8; null for other names.
const ProductFormat* product_format(std::string_view name);

/// `gpu` with the rate of the format in place of the fp8 peak; zero where the GPU lacks it.
GpuSpec gpu_in_format(const ProductFormat& format, GpuSpec gpu);

/// out[m,n] = A[m,k] * B[n,k] in 16 bits, from operands of the format.
Kernel product_in_format(const ProductFormat& format, std::int64_t m, std::int64_t n,
                         std::int64_t k);

/// What makes 16-bit activations [m,k] operands of the format, their scales known.
Kernel quantization_kernel(const ProductFormat& format, std::int64_t m, std::int64_t k);

/// Finds the largest values of 16-bit activations [m,k].
Kernel search_kernel(std::int64_t m, std::int64_t k);

/// All that a call does to 16-bit activations [m,k] ahead of its product.
std::vector<Kernel> quantization_kernels(const ProductFormat& format, std::int64_t m,
                                         std::int64_t k);

}  // namespace tessera
