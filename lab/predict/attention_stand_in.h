#pragma once

#include <string_view>

#include "hw/gpu.h"
#include "workloads/program/attention.h"

namespace tessera {

/// The measured implementation that comes nearest to attention of a software that nobody measured:
/// by what its name says, else the fastest that the GPU runs.
AttentionImplementation nearest_implementation(std::string_view stack, const GpuSpec& gpu);

/// `gpu` as attention on 8-bit operands sees it: 1.5 times the 16-bit peak. Both products run at
/// twice the rate, softmax between them does not (FlashAttention-3, arXiv:2407.08608: 740 TFLOP/s
/// in fp16, close to 1.2 PFLOP/s in fp8). Unchanged where the GPU has no fp8.
GpuSpec gpu_with_fp8_attention(GpuSpec gpu);

}  // namespace tessera
