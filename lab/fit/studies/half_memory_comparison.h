#pragma once

#include <string>

#include "lab/fit/fp32/dataset.h"
#include "lab/fit/tensor/half_memory_table.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// What training kernels on 16-bit tensors may be predicted with, as text: the FP32 model by bytes
/// against the model fitted to 16-bit kernels, on the held-out residual adds, the one measured
/// kernel that a training framework also runs; and the share of its bandwidth that each GPU with
/// FP32 measurements reaches, against the share that a copy from A100-SXM4-80GB would give it.
/// `weights` hold both sections.
std::string half_memory_comparison(const HalfMemoryTable& table, const GpuLookup& lookup,
                                   const PredictorWeights& weights);

}  // namespace tessera
