#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "predictor/attention/attention_predictor.h"
#include "predictor/tensor/tensor_gemm_predictor.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Kernels that run on tensor cores, as a training framework launches them: products of tf32, bf16,
/// fp16 and fp8, and fused attention. The library of the products is unknown: the mean of those
/// measured. Pure and deterministic; safe to share between threads.
///
/// Durations are those of a step, kernel behind kernel on a stream. The rows of tensor_core.csv are
/// replays of one kernel from a graph, back to back, so each holds what a kernel takes to start and
/// drain; a step pays the same, and products take it whole (`launch_seconds`, 1.9 to 2.7 us).
///
/// Convolutions in these formats were never timed: as their implicit product, groups as a batch.
class TensorCorePredictor {
 public:
  TensorCorePredictor(const GpuSpec& gpu, const PredictorWeights& weights,
                      Load load = Load::sustained);

  /// The product that stands for `kernel`: itself, or that of a convolution.
  static Kernel product_of(const Kernel& kernel);
  /// Products in another format than fp32, but those that leave tensor cores, and attention.
  static bool covers(const Kernel& kernel);
  /// Throws InputError where the GPU has no tensor cores for the kernel's precision, does not run
  /// the implementation of attention, or the weights lack the section; std::invalid_argument for
  /// kernels not covered.
  KernelPrediction predict(const Kernel& kernel) const;
  /// What starting and draining add to a kernel of this kind; part of `predict`.
  Seconds launch_seconds(const Kernel& kernel) const;
  /// As KernelPredictor::notes.
  std::vector<std::string> notes(const Kernel& kernel) const;
  /// Which measurements the prediction rests on, in words.
  std::string reason(const Kernel& kernel) const;

  const TensorGemmPredictor& products(Precision precision) const;
  const AttentionPredictor& attention(const Kernel& kernel) const;

 private:
  GpuSpec gpu_;
  bool trained_on_products_, trained_on_attention_;
  std::array<std::optional<TensorGemmPredictor>, kAllPrecisions.size()> products_;
  std::optional<AttentionPredictor> attention_;
};

}  // namespace tessera
