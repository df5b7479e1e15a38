#pragma once

#include "predictor/gpu_traits.h"
#include "predictor/kernel_predictor.h"

namespace tessera {

/// Lower bound of any kernel [s]: arithmetic at peak, or compulsory traffic at peak bandwidth.
double roofline_seconds(const Kernel& kernel, const GpuTraits& gpu);

/// max(flops / peak, bytes / bandwidth) without any loss.
class RooflinePredictor final : public KernelPredictor {
 public:
  explicit RooflinePredictor(const GpuSpec& gpu) : traits_(gpu_traits(gpu)) {}

  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel&) const override { return {}; }

 private:
  GpuTraits traits_;
};

}  // namespace tessera
