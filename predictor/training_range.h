#pragma once

#include <array>

#include "workloads/kernel.h"

namespace tessera {

/// Largest batch, m, n and k of the products that a GEMM model was trained on.
using GemmRange = std::array<double, 4>;

/// Largest kernels that the models were trained on; beyond them they extrapolate.
struct TrainingRange {
  GemmRange linear{};
  GemmRange batched{};
  double memory_bytes = 0;  ///< traffic of memory-bound kernels

  /// False where some size of `kernel` is larger than all training kernels of its class.
  bool covers(const Kernel& kernel) const;
  /// Extends the range to `kernel`.
  void include(const Kernel& kernel);
};

}  // namespace tessera
