#pragma once

#include <functional>
#include <utility>

#include "predictor/kernel_predictor.h"

namespace tessera {

/// Carries a baseline of single kernels to whole models: a kernel takes what the baseline says of
/// an isolated call, launch gap included, as the papers add such calls up.
class BaselinePredictor final : public KernelPredictor {
 public:
  /// `seconds`: latency of a kernel on the GPU [s].
  explicit BaselinePredictor(std::function<double(const Kernel&)> seconds)
      : seconds_(std::move(seconds)) {}

  /// Throws InputError for kernels of which baselines have seen nothing alike: convolutions, fused
  /// attention, products per expert, and any in other formats than fp32.
  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel&) const override { return {}; }

 private:
  std::function<double(const Kernel&)> seconds_;
};

}  // namespace tessera
