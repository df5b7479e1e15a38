#include "sim/scenario/cast_choice.h"

namespace tessera {

void choose_casts(StepOptions& step, const GpuSpec& gpu) {
  FrameworkProfile& profile = step.framework;
  // 10.0 and 10.3; 12.0, of cards without such products, is excluded there by number.
  const bool any_order = gpu.compute_capability.starts_with("10.");
  const bool one_scale =
      profile.fp8_scaling == Fp8Scaling::delayed || profile.fp8_scaling == Fp8Scaling::current;
  profile.fp8_transposes = !(profile.transformer_engine && any_order && one_scale);
}

}  // namespace tessera
