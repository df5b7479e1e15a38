#pragma once

#include "hw/gpu.h"
#include "workloads/step_options.h"

namespace tessera {

/// Puts the attention kernels that the framework runs on `gpu` in place of the profile's wish:
/// fused ones need 16-bit activations and compute capability 8.0, a fused softmax 16 bits. cuDNN
/// takes any layout. Returns whether PyTorch would run kernels of its sdpa that are not simulated,
/// which keep no scores either (memory-efficient attention).
bool choose_attention(StepOptions& step, const GpuSpec& gpu);

}  // namespace tessera
