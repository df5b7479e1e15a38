#pragma once

#include "predictor/fp32/gemm_table.h"
#include "predictor/fp32/memory_table.h"
#include "predictor/gpu/gpu_effects.h"
#include "predictor/kernel_predictor.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Kernels that run without tensor cores: FP32 products and convolutions, and memory-bound kernels
/// of every number format, by their bytes. Parametric: soft minimum over tiles, waves, split
/// contraction, power limit; memory-bound kernels by traffic; convolutions as the fastest of
/// cuDNN's algorithms. Shared parameters and one effect per GPU.
///
/// Convolutions on a GPU where none was timed: its slowdown of linear layers plus the mean
/// difference that the measured GPUs show. With weights that hold no convolutions at all: as their
/// implicit product. `effect().reason` says so. Grouped products: as a batch of equal groups.
///
/// Memory-bound kernels on 16-bit tensors take the parameters of FP32 tensors for the same bytes:
/// results/predictor/attention.md compares that with a model of their own.
class CudaCorePredictor final : public KernelPredictor {
 public:
  CudaCorePredictor(const GpuSpec& gpu, const PredictorWeights& weights);

  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel& kernel) const override;
  std::vector<std::string> notes(const Kernel& kernel) const override;
  /// What an isolated, event-timed call of `kind` adds to a kernel that is busy for `busy` and
  /// takes `queued` in a queue.
  Seconds launch_gap(KernelKind kind, Seconds busy, Seconds queued) const;
  const GpuEffect& effect() const { return effect_; }

 private:
  KernelPrediction predict_gemm(const Kernel& kernel) const;
  KernelPrediction predict_convolution(const Kernel& kernel) const;
  /// How far a convolution lies outside the measured ones; of other kernels nothing.
  Extrapolation convolution_beyond(const Kernel& kernel) const;
  KernelPrediction predict_memory(const Kernel& kernel) const;
  double bound(const Kernel& kernel) const;  ///< least duration [s]
  double launch_share(KernelKind kind) const;
  LogSpread spread_of(const Kernel& kernel, const KernelPrediction& prediction) const;

  GpuTraits traits_;
  GpuTraits products_;  ///< as products see the GPU
  GpuEffect effect_;
  TrainingRange range_;
  SpreadByClass spreads_;
  GemmTable linear_;             ///< linear layers in TN order, as they were timed
  GemmTable transposed_linear_;  ///< in NN and NT order
  GemmTable batched_;
  MemoryTable memory_;
  std::optional<ConvolutionWeights> convolution_;
  double linear_launch_share_, batched_launch_share_;
  std::array<double, kMemoryClasses> memory_launch_share_;
};

}  // namespace tessera
