#include "sim/scenario/cast_choice.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

bool transposes(const char* compute_capability, Fp8Scaling scaling, bool engine = true) {
  GpuSpec gpu;
  gpu.compute_capability = compute_capability;
  StepOptions step;
  step.framework.transformer_engine = engine;
  step.framework.fp8_scaling = scaling;
  choose_casts(step, gpu);
  return step.framework.fp8_transposes;
}

TEST(CastChoice, OnDataCenterBlackwellOneCopyOfOneScaleIsReadInEitherOrder) {
  for (const Fp8Scaling scaling : {Fp8Scaling::delayed, Fp8Scaling::current}) {
    EXPECT_TRUE(transposes("9.0", scaling));
    EXPECT_FALSE(transposes("10.0", scaling));
    EXPECT_FALSE(transposes("10.3", scaling));
    EXPECT_TRUE(transposes("12.0", scaling));
    EXPECT_TRUE(transposes("10.0", scaling, false));  // torchao
  }
  EXPECT_TRUE(transposes("10.0", Fp8Scaling::mxfp8));
}

}  // namespace
}  // namespace tessera
