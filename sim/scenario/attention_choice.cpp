#include "sim/scenario/attention_choice.h"

#include "predictor/gpu/gpu_support.h"

namespace tessera {
namespace {

AttentionKernels attention_on(const StepOptions& step, const GpuSpec& gpu) {
  using enum AttentionKernels;
  const AttentionKernels wish = step.framework.attention;
  const bool half = is_half(activation_precision(step.precision));
  if (!half || wish == unfused) return unfused;
  const bool megatron = step.framework.modules == ModuleTree::megatron;
  const bool runs_fused = supports(gpu, AttentionImplementation::flash2);
  if (!runs_fused) return megatron ? fused_softmax : unfused;
  if (wish != transformer_engine) return wish;
  return gpu.architecture >= Architecture::hopper ? cudnn : flash2;
}

}  // namespace

bool choose_attention(StepOptions& step, const GpuSpec& gpu) {
  FrameworkProfile& profile = step.framework;
  const bool by_torch =
      profile.attention == AttentionKernels::flash2 && profile.modules == ModuleTree::hugging_face;
  profile.attention = attention_on(step, gpu);
  if (profile.attention == AttentionKernels::cudnn) profile.attention_copies = false;
  return by_torch && profile.attention == AttentionKernels::unfused;
}

}  // namespace tessera
