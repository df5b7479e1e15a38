#pragma once

#include "lab/predict/memory_bound_table.h"
#include "predictor/gpu/gpu_traits.h"
#include "predictor/tessera_predictor.h"

namespace tessera {

/// Instructions that the server's own kernel takes for each 16-bit element that it reads and
/// writes: the number with which the rows of kernels/memory_bound_fp16.csv (A100-SXM4-80GB) of 20
/// us and longer are off least. They load one element at a time. 0 for PyTorch's adds and GELUs,
/// which training steps launch too and predict by themselves (predictor/fp32/issue_limit.h).
double server_instructions(MemoryBoundOp op);

/// Predicts the memory-bound kernels of an LLM server of 2023 (vLLM) on one GPU: as a step's kernel
/// of the same traffic, at least as long as its instructions take.
class MemoryBoundPredictor {
 public:
  /// Throws InputError naming what `gpu` or `weights` lack.
  MemoryBoundPredictor(const GpuSpec& gpu, const PredictorWeights& weights);

  /// Of one call of a row.
  KernelPrediction predict(const MemoryBoundRow& row) const {
    return predict(row, server_instructions(row.op));
  }
  /// The same of a kernel that takes `instructions` for each element.
  KernelPrediction predict(const MemoryBoundRow& row, double instructions) const;

 private:
  TesseraPredictor kernels_;
  GpuTraits gpu_;
};

}  // namespace tessera
