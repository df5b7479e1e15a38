#include "predictor/roofline.h"

#include <algorithm>

#include "predictor/gpu/gpu_support.h"

namespace tessera {

double roofline_seconds(const Kernel& kernel, const GpuTraits& gpu) {
  return std::max(kernel.flops.value() / gpu.flops,
                  static_cast<double>(kernel.bytes().value()) / gpu.bandwidth);
}

double RooflinePredictor::peak_of(const Kernel& kernel) const {
  const bool attention = kernel.kind == KernelKind::attention;
  if (attention) require(gpu_, kernel.attention.implementation);
  if (kernel.precision == Precision::fp32 || !(attention || is_product(kernel.kind)))
    return traits_.flops;
  require_products(gpu_, kernel.precision);
  return gpu_.peak(kernel.precision).value();
}

KernelPrediction RooflinePredictor::predict(const Kernel& kernel) const {
  const double compute = kernel.flops.value() / peak_of(kernel);
  const double memory = static_cast<double>(kernel.bytes().value()) / traits_.bandwidth;
  return {.duration = Seconds(std::max(compute, memory)),
          .compute_time = Seconds(compute),
          .memory_time = Seconds(memory),
          .utilization = 1};
}

}  // namespace tessera
