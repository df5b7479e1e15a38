#pragma once

#include <cstdint>

#include "predictor/half/attention_weights.h"
#include "predictor/kernel_predictor.h"

namespace tessera {

/// One memory-bound kernel on tensors of 2 bytes per element.
struct HalfMemoryCall {
  HalfMemoryOp op = HalfMemoryOp::add;
  std::int64_t rows = 1;   ///< tokens
  std::int64_t width = 1;  ///< elements per row of the output
};
/// Traffic, each operand once: add 3 tensors of rows x width, silu_mul 3, the others 2.
double half_memory_bytes(const HalfMemoryCall& call);

/// Whose kernels a call runs.
enum class HalfMemoryKernels : std::uint8_t {
  /// What training frameworks launch. Only the residual add was measured with such a kernel:
  /// element-wise operators take its parameters; norms reach 0.74 and gathers 0.80 of its
  /// bandwidth, the shares that the FP32 measurements of A100 (0.65 / 0.88) and the FP32 model's
  /// factor for gathers (1.25) give. Judgement: spread 0.15.
  training,
  /// The measured ones, of an LLM server: rms_norm at 0.37, rope at 0.45 and embedding at 0.16 of
  /// the bandwidth are slow implementations.
  server,
};

/// Predicts 16-bit memory-bound kernels of one GPU. GPUs other than the measured one copy its
/// efficiencies with a spread of 0.15. Pure; safe to share between threads.
class HalfMemoryPredictor {
 public:
  /// Throws InputError where `gpu` lacks its memory bandwidth or L2 size.
  HalfMemoryPredictor(const GpuSpec& gpu, HalfMemoryWeights weights,
                      HalfMemoryKernels kernels = HalfMemoryKernels::training);

  /// Throws InputError for sizes below 1.
  KernelPrediction predict(const HalfMemoryCall& call) const;
  Seconds duration(const HalfMemoryCall& call) const { return predict(call).duration; }

 private:
  GpuSpec spec_;
  HalfMemoryGpu gpu_;
  HalfMemoryWeights weights_;
  HalfMemoryKernels kernels_;
};

}  // namespace tessera
