// The U-Net of latent diffusion against its published size.
#include <gtest/gtest.h>

#include "tests/workloads/vision/vision_models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

ModelSpec model() {
  return test::vision(VisionArchitecture::latent_unet, "stable-diffusion-1-unet");
}

StepOptions step(StepMode mode, std::int64_t images) {
  StepOptions step;
  step.mode = mode;
  step.micro_batch = step.global_batch = images;
  return step;
}

TEST(LatentUNet, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(parameter_count(model()), 859'520'964);  // of diffusers' checkpoint, to the last
}

TEST(LatentUNet, MultipliesWhatItsLayersSay) {
  const Program program = build_program(model(), step(StepMode::inference, 1));
  // 0.80 TFLOP at 64 x 64 with a text of 77 tokens, attention included.
  EXPECT_NEAR(program.model_flops.value(), 0.80e12, 0.02 * 0.80e12);
}

TEST(LatentUNet, TrainsWithThreeTimesTheArithmetic) {
  const double forward = build_program(model(), step(StepMode::inference, 2)).model_flops.value();
  const double all = build_program(model(), step(StepMode::training, 2)).model_flops.value();
  EXPECT_NEAR(all / forward, 3, 0.01);
}

}  // namespace
}  // namespace tessera
