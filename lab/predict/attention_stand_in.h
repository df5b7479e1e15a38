#pragma once

#include <string_view>

#include "hw/gpu.h"
#include "predictor/attention/attention_weights.h"
#include "workloads/program/attention.h"

namespace tessera {

/// The measured implementation that comes nearest to attention of a software that nobody measured:
/// by what its name says, else the fastest that the GPU runs.
AttentionImplementation nearest_implementation(std::string_view stack, const GpuSpec& gpu);

/// `gpu` as attention on 8-bit operands sees it: 1.5 times the 16-bit peak. Both products run at
/// twice the rate, softmax between them does not (FlashAttention-3, arXiv:2407.08608: 740 TFLOP/s
/// in fp16, close to 1.2 PFLOP/s in fp8). Unchanged where the GPU has no fp8.
GpuSpec gpu_with_fp8_attention(GpuSpec gpu);

/// `weights` for that GPU: its products are as fast as its clock says, exponentials are as slow as
/// in 16 bits, operands and cache move three quarters of the bytes. What rearranging Q takes stays:
/// instructions limit it.
AttentionWeights fp8_attention_weights(AttentionWeights weights);

/// Whether the software multiplies in fp8 where its cache is in fp8: TensorRT-LLM's kernels on
/// Hopper and later, not on Ada (mla.csv and attention_window.csv: its calls in the two formats
/// take as long on A100 and L40S; on H100 and GB200 long ones in fp8 .91 and .76 times).
bool attends_in_cache_format(AttentionImplementation implementation, const GpuSpec& gpu);

/// Whether a call whose window hides keys multiplies in 16 bits by Ampere's instructions, though
/// its cache is in fp8: TensorRT-LLM's on Hopper, where it takes 1.61 times as long as with a cache
/// in bf16 if arithmetic is all, .69 times without a window (attention_window.csv, heads of 128).
bool leaves_cache_format(AttentionImplementation implementation, const GpuSpec& gpu);

/// Hopper as those instructions find it.
GpuSpec gpu_by_earlier_instructions(GpuSpec gpu);

/// Whether the software makes 8-bit queries in a pass of their own for a cache in fp8: vLLM does
/// ahead of FlashAttention-3 (recalled).
bool quantizes_queries(AttentionImplementation implementation);

}  // namespace tessera
