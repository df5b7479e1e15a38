#include "lab/predict/attention_stand_in.h"

#include <cmath>

#include "predictor/gpu/gpu_support.h"
#include "predictor/gpu/sm_rate.h"

namespace tessera {
namespace {

constexpr double kFp8Attention = 1.5;
/// Of what moves in 16 bits: Q, K and V are read in 16 and written in 8 ahead of attention, and
/// read in 8 by it, which writes its output in 16.
constexpr double kFp8Traffic = 0.75;

bool says(std::string_view stack, std::string_view word) {
  return stack.find(word) != std::string_view::npos;
}

bool later_than_ada(const GpuSpec& gpu) {
  return gpu.architecture >= Architecture::hopper && gpu.architecture < Architecture::cdna1;
}

}  // namespace

AttentionImplementation nearest_implementation(std::string_view stack, const GpuSpec& gpu) {
  using enum AttentionImplementation;
  // FlashInfer hands data centre GPUs of Blackwell to TensorRT-LLM's kernels and has its own in
  // FlashAttention's manner for all others.
  const bool handed = says(stack, "flashinfer") && has_tensor_memory(gpu);
  if (says(stack, "trtllm") || says(stack, "TRTLLM") || handed) return trtllm;
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

AttentionWeights fp8_attention_weights(AttentionWeights weights) {
  for (AttentionProfile& profile : weights.profiles) {
    profile.parameters[kExponentials] += std::log(kFp8Attention);
    for (const auto traffic : {kMemoryShare, kCacheWrite})
      profile.parameters[traffic] += std::log(kFp8Traffic);
  }
  return weights;
}

bool attends_in_cache_format(AttentionImplementation implementation, const GpuSpec& gpu) {
  return implementation == AttentionImplementation::trtllm && later_than_ada(gpu);
}

bool leaves_cache_format(AttentionImplementation implementation, const GpuSpec& gpu) {
  return implementation == AttentionImplementation::trtllm &&
         gpu.architecture == Architecture::hopper;
}

GpuSpec gpu_by_earlier_instructions(GpuSpec gpu) {
  gpu.bf16 = gpu.bf16 * kHopperByMma;
  gpu.fp16 = gpu.fp16 * kHopperByMma;
  return gpu;
}

bool quantizes_queries(AttentionImplementation implementation) {
  return implementation == AttentionImplementation::flash3;
}

}  // namespace tessera
