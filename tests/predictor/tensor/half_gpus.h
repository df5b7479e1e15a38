#pragma once

#include <string>

#include "tests/predictor/test_gpus.h"

namespace tessera {

/// test_gpu with dense 16-bit tensor peaks (datasheets): A100 312 TFLOP/s at 1411 MHz, H100 989.4
/// at 1830 MHz, L4 121 at 2037 MHz.
inline GpuSpec half_test_gpu(const std::string& id) {
  GpuSpec gpu = test_gpu(id);
  const bool hopper = gpu.architecture == Architecture::hopper;
  if (gpu.architecture < Architecture::ampere) return gpu;
  gpu.bf16 = gpu.fp16 = FlopsPerSecond(hopper ? 989.4e12 : 312e12);
  gpu.tensor_clock = Hertz(hopper ? 1830e6 : 1411e6);
  if (gpu.architecture == Architecture::ada) {
    gpu.bf16 = gpu.fp16 = FlopsPerSecond(121e12);
    gpu.tensor_clock = Hertz(2037e6);
  }
  return gpu;
}

}  // namespace tessera
