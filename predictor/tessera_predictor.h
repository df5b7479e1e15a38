#pragma once

#include <string>
#include <vector>

#include "predictor/fp32/cuda_core_predictor.h"
#include "predictor/tensor/tensor_core_predictor.h"

namespace tessera {

/// The form tessera: every kernel goes to the model of what it runs on.
///
/// | kernel | model |
/// |---|---|
/// | products and convolutions in fp32 | CudaCorePredictor |
/// | the same in tf32, bf16, fp16, fp8 | TensorGemmPredictor (predictor/tensor) |
/// | batched bf16 or fp16 products with rows off 16 bytes | CudaCorePredictor, of 16-bit operands |
/// | fused attention | AttentionPredictor (predictor/attention), as in training |
/// | everything else, in every format | CudaCorePredictor, by bytes |
class TesseraPredictor final : public KernelPredictor {
 public:
  TesseraPredictor(const GpuSpec& gpu, const PredictorWeights& weights, Load load = Load::sustained)
      : cuda_cores_(gpu, weights), tensor_cores_(gpu, weights, load) {}

  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel& kernel) const override;
  std::vector<std::string> notes(const Kernel& kernel) const override;

  /// Of the kernels that run without tensor cores.
  const GpuEffect& effect() const { return cuda_cores_.effect(); }
  const TensorCorePredictor& tensor_cores() const { return tensor_cores_; }

 private:
  CudaCorePredictor cuda_cores_;
  TensorCorePredictor tensor_cores_;
};

}  // namespace tessera
