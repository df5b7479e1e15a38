#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "workloads/program/kernel.h"

namespace tessera {

/// Largest batch, m, n and k of the products that a GEMM model was trained on.
using GemmRange = std::array<double, 4>;

/// How far an input lies outside the training data.
struct Extrapolation {
  std::string_view input;  ///< "m", "traffic", ...; empty where all inputs lie inside
  double factor = 1;       ///< input / largest one that was trained on, >= 1

  explicit operator bool() const { return factor > 1; }
};

/// Convolutions that were trained on, all of them forward and of one group.
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

  /// Input of `kernel` that lies farthest beyond all training kernels of its class; for a
  /// convolution also its window, stride, pass or groups.
  Extrapolation beyond(const Kernel& kernel) const;
  /// Extends the range to `kernel`.
  void include(const Kernel& kernel);
};

}  // namespace tessera
