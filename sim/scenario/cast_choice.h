#pragma once

#include "hw/gpu.h"
#include "workloads/step_options.h"

namespace tessera {

/// Whether casts to FP8 write a turned copy: before Blackwell products read both matrices by rows
/// alone; Transformer Engine leaves the copy out on data-center Blackwell where a matrix has one
/// scale. Under mxfp8 both orders have scales of their own. Source: Transformer Engine
/// common/transformer_engine.cpp, nvte_is_non_tn_fp8_gemm_supported; pytorch/csrc/quantizer.cpp
/// (recalled).
void choose_casts(StepOptions& step, const GpuSpec& gpu);

}  // namespace tessera
