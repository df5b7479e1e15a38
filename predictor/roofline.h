#pragma once

#include "predictor/gpu/gpu_traits.h"
#include "predictor/kernel_predictor.h"

namespace tessera {

/// Lower bound of any kernel without tensor cores [s]: arithmetic at peak, or compulsory traffic at
/// peak bandwidth.
double roofline_seconds(const Kernel& kernel, const GpuTraits& gpu);

/// max(flops / peak, bytes / bandwidth) without any loss; the peak is that of the kernel's
/// arithmetic: of tensor cores for products in other formats than fp32, and for attention.
class RooflinePredictor final : public KernelPredictor {
 public:
  explicit RooflinePredictor(const GpuSpec& gpu) : gpu_(gpu), traits_(gpu_traits(gpu)) {}

  /// Throws InputError where the GPU has no peak for the kernel's arithmetic.
  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel&) const override { return {}; }

 private:
  double peak_of(const Kernel& kernel) const;  ///< [FLOP/s]

  GpuSpec gpu_;
  GpuTraits traits_;
};

}  // namespace tessera
