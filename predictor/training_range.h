#pragma once

#include <array>
#include <optional>

#include "workloads/kernel.h"

namespace tessera {

/// Largest batch, m, n and k of the products that a GEMM model was trained on.
using GemmRange = std::array<double, 4>;

/// Convolutions that were trained on, all of them forward.
struct ConvolutionRange {
  double least_window = 0, most_window = 0;  ///< [elements]
  double most_stride = 0;
  double m = 0, n = 0, k = 0;  ///< largest sizes of the implicit product
};

/// Largest kernels that the models were trained on; beyond them they extrapolate.
struct TrainingRange {
  GemmRange linear{};
  GemmRange batched{};
  double memory_bytes = 0;  ///< traffic of memory-bound kernels
  std::optional<ConvolutionRange> convolution;

  /// False where some size of `kernel` is larger than all training kernels of its class, or a
  /// convolution of another window, stride or pass than all of them.
  bool covers(const Kernel& kernel) const;
  /// Extends the range to `kernel`.
  void include(const Kernel& kernel);
};

}  // namespace tessera
