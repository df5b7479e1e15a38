#include "predictor/gpu_effects.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/predictor/test_gpus.h"

namespace tessera {
namespace {

TrainedGpu trained(const char* id, double gemm_slowdown, double elementwise_slowdown,
                   double sustained_flops) {
  const GpuTraits traits = gpu_traits(test_gpu(id));
  TrainedGpu gpu;
  gpu.effect.gpu = id;
  gpu.effect.gemm_slowdown = gemm_slowdown;
  gpu.effect.bandwidth_slowdown[0] = elementwise_slowdown;
  gpu.effect.sustained_flops = sustained_flops;
  gpu.die = die_of(test_gpu(id));
  gpu.lanes_per_scheduler = traits.lanes_per_scheduler;
  gpu.efficiency_steps = traits.efficiency_steps;
  gpu.hbm = traits.hbm;
  return gpu;
}

PredictorWeights example_weights() {
  PredictorWeights weights;
  weights.gpus = {trained("V100-PCIe-32GB", 0.10, 0.1, 0), trained("A100-PCIe-40GB", 0.20, 0.2, 0),
                  trained("P100-PCIe-16GB", 0.30, 0.3, 0), trained("T4", 0.50, 0.25, 3e12)};
  weights.power_kappa = 0.04e12;
  return weights;
}

TEST(GpuTraits, LanesPerSchedulerFollowTheSmDiagram) {
  // 3584 lanes on 56 SMs with 2 schedulers; 64 lanes and 4 schedulers; 128 lanes and 4 schedulers.
  EXPECT_EQ(gpu_traits(test_gpu("P100-PCIe-16GB")).lanes_per_scheduler, 32);
  EXPECT_EQ(gpu_traits(test_gpu("V100-PCIe-32GB")).lanes_per_scheduler, 16);
  EXPECT_EQ(gpu_traits(test_gpu("T4")).lanes_per_scheduler, 16);
  EXPECT_EQ(gpu_traits(test_gpu("A100-SXM4-80GB")).lanes_per_scheduler, 16);
  EXPECT_EQ(gpu_traits(test_gpu("A40")).lanes_per_scheduler, 32);
  EXPECT_EQ(gpu_traits(test_gpu("H100-SXM5-80GB")).lanes_per_scheduler, 32);
}

TEST(GpuTraits, MissingFiguresAreNamedTogether) {
  GpuSpec gpu = test_gpu("T4");
  gpu.fp32 = {};
  gpu.l2 = {};
  try {
    gpu_traits(gpu);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_EQ(error.problems()[0].what, "fp32 peak is missing");
    EXPECT_EQ(error.problems()[1].what, "L2 size is missing");
  }
}

TEST(GpuEffects, AMeasuredGpuKeepsItsOwn) {
  const GpuEffect effect = effect_for(test_gpu("P100-PCIe-16GB"), example_weights());
  EXPECT_EQ(effect.provenance, EffectProvenance::measured);
  EXPECT_EQ(effect.gemm_slowdown, 0.30);
}

TEST(GpuEffects, ABoardTakesThatOfItsTwinDie) {
  const GpuEffect effect = effect_for(test_gpu("A100-SXM4-80GB"), example_weights());
  EXPECT_EQ(effect.provenance, EffectProvenance::twin_die);
  EXPECT_EQ(effect.gemm_slowdown, 0.20);
  EXPECT_EQ(effect.gpu, "A100-SXM4-80GB");
}

TEST(GpuEffects, AnUnseenGpuTakesTheMeanOfUnlimitedSixteenLaneGpusPlusIssueLoss) {
  const GpuEffect effect = effect_for(test_gpu("H100-SXM5-80GB"), example_weights());
  EXPECT_EQ(effect.provenance, EffectProvenance::rule);
  EXPECT_DOUBLE_EQ(effect.gemm_slowdown, (0.10 + 0.20) / 2 + 0.09);
  // HBM like V100 and A100; P100 is of Pascal.
  EXPECT_DOUBLE_EQ(effect.bandwidth_slowdown[0], (0.1 + 0.2) / 2);
}

TEST(GpuEffects, TheSustainedRateFollowsThePowerAboveIdle) {
  // 0.04 TFLOP/s per watt * (72 - 10) W * 1.5^3 = 8.37 TFLOP/s
  const GpuEffect l4 = effect_for(test_gpu("L4"), example_weights());
  EXPECT_NEAR(l4.sustained_flops, 8.37e12, 1e9);
  EXPECT_DOUBLE_EQ(power_kappa(sustained_flops(5e10, 72, 2), 72, 2), 5e10);
}

}  // namespace
}  // namespace tessera
