#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// What measurements of one GPU change about its kernels on tensor cores, in log time: a larger one
/// means more time.
struct TensorShift {
  double compute = 0;     ///< products, where tiles decide
  double memory = 0;      ///< products, where traffic decides
  double power = 0;       ///< products, where the power limit of a busy GPU decides
  double attention = 0;   ///< fused attention
  std::int64_t rows = 0;  ///< kernels or steps that it was fitted to; 0 = nothing was measured
  bool of_steps = false;  ///< steps, not kernels
  std::string source;     ///< those, in words
};

}  // namespace tessera
