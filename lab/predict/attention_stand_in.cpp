#include "lab/predict/attention_stand_in.h"

#include "predictor/gpu/gpu_support.h"

namespace tessera {
namespace {

constexpr double kFp8Attention = 1.5;

bool says(std::string_view stack, std::string_view word) {
  return stack.find(word) != std::string_view::npos;
}

}  // namespace

AttentionImplementation nearest_implementation(std::string_view stack, const GpuSpec& gpu) {
  using enum AttentionImplementation;
  if (says(stack, "trtllm") || says(stack, "TRTLLM") || says(stack, "flashinfer")) return trtllm;
  // vLLM's backend of that name is Triton's for one query at a time, FlashAttention's for many.
  if (says(stack, "triton") && !says(stack, "triton_mla")) return flash1;
  if (says(stack, "cudnn") || says(stack, "cuDNN")) return cudnn;
  return fastest_implementation(gpu).value_or(flash2);
}

GpuSpec gpu_with_fp8_attention(GpuSpec gpu) {
  if (gpu.fp8.value() == 0) return gpu;
  gpu.bf16 = gpu.bf16 * kFp8Attention;
  gpu.fp16 = gpu.fp16 * kFp8Attention;
  gpu.tensor_clock = gpu.tensor_clock * kFp8Attention;  // the peak follows from SMs and clock
  return gpu;
}

}  // namespace tessera
