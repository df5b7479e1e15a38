#include "sim/scenario/cast_choice.h"

#include "predictor/gpu/gpu_support.h"

namespace tessera {

void choose_casts(StepOptions& step, const GpuSpec& gpu) {
  FrameworkProfile& profile = step.framework;
  const bool any_order = has_tensor_memory(gpu);
  const bool one_scale =
      profile.fp8_scaling == Fp8Scaling::delayed || profile.fp8_scaling == Fp8Scaling::current;
  profile.fp8_transposes = !(profile.transformer_engine && any_order && one_scale);
}

}  // namespace tessera
