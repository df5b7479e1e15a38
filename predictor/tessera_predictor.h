#pragma once

#include "predictor/gpu_effects.h"
#include "predictor/kernel_predictor.h"
#include "predictor/weights.h"

namespace tessera {

/// The parametric form: soft minimum over tiles, waves, split contraction, power limit;
/// memory-bound kernels by traffic; convolutions as the fastest of cuDNN's algorithms. Shared
/// parameters and one effect per GPU.
///
/// Convolutions on a GPU where none was timed: its slowdown of linear layers plus the mean
/// difference that the measured GPUs show. With weights that hold no convolutions at all: as their
/// implicit product. `effect().reason` says so.
class TesseraPredictor final : public KernelPredictor {
 public:
  TesseraPredictor(const GpuSpec& gpu, const PredictorWeights& weights);

  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel& kernel) const override;
  const GpuEffect& effect() const { return effect_; }

 private:
  KernelPrediction predict_gemm(const Kernel& kernel) const;
  KernelPrediction predict_convolution(const Kernel& kernel) const;
  KernelPrediction predict_memory(const Kernel& kernel) const;
  double bound(const Kernel& kernel) const;  ///< least duration [s]
  double launch_share(KernelKind kind) const;

  GpuTraits traits_;
  GpuEffect effect_;
  GemmWeights gemm_;
  GemmWeights batched_;
  MemoryParameters<double> memory_;
  std::optional<ConvolutionWeights> convolution_;
  TrainingRange range_;
  double transposed_shift_ = 0;  ///< log time of NN and NT against TN for large linear layers
};

}  // namespace tessera
