#pragma once

#include <cstdint>

#include "predictor/attention/attention_weights.h"
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

/// Predicts the 16-bit memory-bound kernels of the LLM server that was timed: its rms_norm at 0.37,
/// rope at 0.45 and embedding at 0.16 of the bandwidth are slow implementations. What training
/// frameworks launch is predicted by CudaCorePredictor. GPUs other than the measured one copy its
/// efficiencies with a spread of 0.15. Pure; safe to share between threads.
class HalfMemoryPredictor {
 public:
  /// Throws InputError where `gpu` lacks its memory bandwidth or L2 size.
  HalfMemoryPredictor(const GpuSpec& gpu, HalfMemoryWeights weights);

  /// Throws InputError for sizes below 1.
  KernelPrediction predict(const HalfMemoryCall& call) const;
  Seconds duration(const HalfMemoryCall& call) const { return predict(call).duration; }
  /// The same for a shape whose traffic is not that of the call's sizes.
  KernelPrediction predict(HalfMemoryOp op, const HalfMemoryShape& shape) const;

 private:
  GpuSpec spec_;
  HalfMemoryGpu gpu_;
  HalfMemoryWeights weights_;
};

}  // namespace tessera
