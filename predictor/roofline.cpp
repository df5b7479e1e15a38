#include "predictor/roofline.h"

#include <algorithm>

namespace tessera {

double roofline_seconds(const Kernel& kernel, const GpuTraits& gpu) {
  return std::max(kernel.flops.value() / gpu.flops,
                  static_cast<double>(kernel.bytes().value()) / gpu.bandwidth);
}

KernelPrediction RooflinePredictor::predict(const Kernel& kernel) const {
  return {.duration = Seconds(roofline_seconds(kernel, traits_)),
          .compute_time = Seconds(kernel.flops.value() / traits_.flops),
          .memory_time = Seconds(static_cast<double>(kernel.bytes().value()) / traits_.bandwidth),
          .utilization = 1};
}

}  // namespace tessera
