#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// What measurements of one GPU change about its kernels on tensor cores, in log time: a larger one
/// means more time.
struct TensorShift {
#include "configs/schema/fields/tensor_shift.inc"
  bool of_steps = false;  ///< steps, not kernels
  std::string source;     ///< those, in words
};

}  // namespace tessera
