#include "predictor/gpu/gpu_effects.h"

#include <cmath>

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
  gpu.die = test_gpu(id).die;
  gpu.lanes_per_sm = traits.lanes_per_sm;
  gpu.efficiency_steps = traits.efficiency_steps;
  gpu.hbm = traits.hbm;
  return gpu;
}

PredictorWeights example_weights() {
  PredictorWeights weights;
  weights.gpus = {trained("V100-PCIe-32GB", 0.10, 0.1, 0), trained("A100-PCIe-40GB", 0.20, 0.2, 0),
                  trained("P100-PCIe-16GB", 0.30, 0.3, 0), trained("T4", 0.50, 0.25, 3e12)};
  for (TrainedGpu& gpu : weights.gpus) gpu.tdp = test_gpu(gpu.effect.gpu.c_str()).tdp.value();
  return weights;
}

TEST(GpuTraits, LanesPerSmFollowTheSmDiagram) {
  EXPECT_EQ(gpu_traits(test_gpu("P100-PCIe-16GB")).lanes_per_sm, 64);
  EXPECT_EQ(gpu_traits(test_gpu("P4")).lanes_per_sm, 128);
  EXPECT_EQ(gpu_traits(test_gpu("V100-PCIe-32GB")).lanes_per_sm, 64);
  EXPECT_EQ(gpu_traits(test_gpu("T4")).lanes_per_sm, 64);
  EXPECT_EQ(gpu_traits(test_gpu("A100-SXM4-80GB")).lanes_per_sm, 64);
  EXPECT_EQ(gpu_traits(test_gpu("A40")).lanes_per_sm, 128);
  EXPECT_EQ(gpu_traits(test_gpu("H100-SXM5-80GB")).lanes_per_sm, 128);
}

TEST(GpuTraits, TheClockOfDenseLoadIsThatOfTheTensorPeak) {
  GpuSpec h100 = test_gpu("H100-SXM5-80GB");
  EXPECT_DOUBLE_EQ(gpu_traits(h100).dense_clock_share, 1);  // not stated
  h100.tensor_clock = Hertz(1.830e9);
  // 66.9e12 / (2 * 132 * 128) = 1.980 GHz
  EXPECT_NEAR(gpu_traits(h100).dense_clock_share, 1.830 / 1.980, 1e-3);
}

TEST(GpuTraits, CheckBitsTakeASixteenthOfTheChipsThatADriverShows) {
  GpuSpec gpu = test_gpu("A40");
  const auto in_line = [&](double gib) {
    gpu.memory = Bytes(static_cast<std::int64_t>(gib * (1LL << 30)));
    return gpu_traits(gpu).inline_ecc;
  };
  EXPECT_TRUE(in_line(44.99));  // A40, L40S: 48 * 15/16 = 45
  EXPECT_TRUE(in_line(22.49));  // A10, L4: 24 * 15/16 = 22.5
  EXPECT_TRUE(in_line(15));     // T4
  EXPECT_FALSE(in_line(47.99));
  EXPECT_FALSE(in_line(23.65));  // Quadro RTX 6000: the driver keeps a little
  EXPECT_FALSE(in_line(9.77));   // ten chips of 1 GiB, no sixteen
  gpu = test_gpu("V100-PCIe-32GB");
  EXPECT_FALSE(in_line(15));  // stacked memory has bits of its own for them
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

TEST(GpuEffects, AMeasuredGpuWithAnotherTdpIsHeldToTheRateOfItsWatts) {
  GpuSpec t4 = test_gpu("T4");
  t4.tdp = Watts(140);
  const GpuEffect effect = effect_for(t4, example_weights());
  EXPECT_EQ(effect.provenance, EffectProvenance::twin_die);
  EXPECT_EQ(effect.gemm_slowdown, 0.50);
  EXPECT_NEAR(effect.sustained_flops, 3e12 * sustained_flops(1, 140, 1) / sustained_flops(1, 70, 1),
              1);
  // V100's own watts held nothing back; half of them may.
  GpuSpec v100 = test_gpu("V100-PCIe-32GB");
  v100.tdp = v100.tdp / 2;
  PredictorWeights weights = example_weights();
  weights.rule.power_limit = true;
  EXPECT_EQ(effect_for(test_gpu("V100-PCIe-32GB"), weights).sustained_flops, 0);
  EXPECT_GT(effect_for(v100, weights).sustained_flops, 0);
}

TEST(GpuEffects, ABoardTakesThatOfItsTwinDie) {
  const GpuEffect effect = effect_for(test_gpu("A100-SXM4-80GB"), example_weights());
  EXPECT_EQ(effect.provenance, EffectProvenance::twin_die);
  EXPECT_EQ(effect.gemm_slowdown, 0.20);
  EXPECT_EQ(effect.gpu, "A100-SXM4-80GB");
}

TEST(GpuEffects, AnUnseenGpuTakesTheMeanSinceVoltaPlusTheDerivedLossOfWideSms) {
  const GpuEffect effect = effect_for(test_gpu("H100-SXM5-80GB"), example_weights());
  EXPECT_EQ(effect.provenance, EffectProvenance::rule);
  EXPECT_DOUBLE_EQ(effect.gemm_slowdown, (0.10 + 0.20) / 2 + 0.09);
  // HBM like V100 and A100; P100 is of Pascal.
  EXPECT_DOUBLE_EQ(effect.bandwidth_slowdown[0], (0.1 + 0.2) / 2);
}

TEST(GpuEffects, TheLossOfWideSmsIsThatOfP4AgainstP100WhereBothWereMeasured) {
  PredictorWeights weights = example_weights();
  weights.gpus[2].effect.batched_slowdown = 0.05;  // P100
  weights.gpus.push_back(trained("P4", 0.40, 0.3, 3e12));
  weights.gpus.back().effect.batched_slowdown = 0.25;
  const GpuEffect effect = effect_for(test_gpu("H100-SXM5-80GB"), weights);
  EXPECT_DOUBLE_EQ(effect.gemm_slowdown, (0.10 + 0.20) / 2 + (0.25 - 0.05));
}

TEST(GpuEffects, ASlowerClockOfDenseLoadSlowsGemmsAlone) {
  GpuSpec slower = test_gpu("H100-SXM5-80GB");
  slower.tensor_clock = Hertz(1.830e9);
  const GpuEffect full = effect_for(test_gpu("H100-SXM5-80GB"), example_weights());
  const GpuEffect effect = effect_for(slower, example_weights());
  EXPECT_NEAR(effect.gemm_slowdown - full.gemm_slowdown, std::log(1.980 / 1.830), 1e-3);
  EXPECT_EQ(effect.bandwidth_slowdown, full.bandwidth_slowdown);
}

TEST(GpuEffects, ACardWithPowerKeepsItsChipsAsBusyAsStackedMemory) {
  GpuSpec a40 = test_gpu("A40");
  const double stacked = (0.1 + 0.2) / 2;  // V100 and A100; T4's 0.25 is that of 70 W
  EXPECT_DOUBLE_EQ(effect_for(a40, example_weights()).bandwidth_slowdown[0], stacked);
  a40.memory = Bytes(45LL << 30);
  EXPECT_DOUBLE_EQ(effect_for(a40, example_weights()).bandwidth_slowdown[0],
                   stacked + std::log(16 / 15.0));
  EXPECT_DOUBLE_EQ(effect_for(test_gpu("L4"), example_weights()).bandwidth_slowdown[0], 0.25);
  PredictorWeights weights = example_weights();
  weights.gpus.erase(weights.gpus.begin(), weights.gpus.begin() + 2);  // P100 and T4 are left
  EXPECT_DOUBLE_EQ(effect_for(a40, weights).bandwidth_slowdown[0], 0.25);
}

TEST(GpuEffects, TheSustainedRateFollowsThePowerAboveIdle) {
  // T4 sustains 3 TFLOP/s with 70 - 26 W at 1.5 times Pascal's efficiency; L4 has 72 - 26 W
  // at 4.05.
  const double kappa = 3e12 / (44 * 1.5);
  EXPECT_NEAR(power_kappa(example_weights().gpus), kappa, 1);
  const GpuEffect l4 = effect_for(test_gpu("L4"), example_weights());
  EXPECT_NEAR(l4.sustained_flops, kappa * 46 * 4.05, 1);
}

TEST(GpuEffects, ABoardOfManyWattsIdlesAtAShareOfThem) {
  // A40: 300 W, of which .15 do no arithmetic; Ampere's efficiency is 2.46 times Pascal's.
  const double kappa = 3e12 / (44 * 1.5);
  const GpuEffect a40 = effect_for(test_gpu("A40"), example_weights());
  EXPECT_NEAR(a40.sustained_flops, kappa * (300 - 45) * 2.46, 1);
}

TEST(GpuEffects, WattsSpeakForTheNearestGenerationAlone) {
  PredictorWeights weights = example_weights();
  const auto l4 = [&] { return effect_for(test_gpu("L4"), weights).sustained_flops; };
  const double by_t4 = l4();
  weights.gpus.push_back(trained("P4", 0.40, 0.3, 9e12));  // Pascal: three steps away, T4 two
  weights.gpus.back().tdp = 75;
  EXPECT_DOUBLE_EQ(l4(), by_t4);
  weights.gpus.erase(weights.gpus.begin() + 3);  // without T4
  EXPECT_NEAR(l4(), 9e12 / (75 - 26) * 46 * 4.05, 1);
}

TEST(GpuEffects, AGpuWithoutALimitProvesThatItsRateIsPossible) {
  PredictorWeights weights = example_weights();
  weights.gpus[0].reached_flops = 16e12;  // V100 at 250 W, 37.5 of them idle
  EXPECT_NEAR(power_kappa(weights.gpus), 16e12 / (212.5 * 1.5), 1);
  weights.gpus[0].reached_flops = 1e12;  // proves nothing
  EXPECT_NEAR(power_kappa(weights.gpus), 3e12 / (44 * 1.5), 1);
}

TEST(GpuEffects, ALimitedCardIsDrawnTowardsWhatLimitedCardsHaveInCommon) {
  PredictorWeights weights = example_weights();
  weights.gpus.push_back(trained("P4", 0.40, 0.3, 49 * 0.02e12));
  weights.gpus.back().tdp = 75;
  weights.gpus[3].effect.sustained_flops = 44 * 1.5 * 0.08e12;  // T4: four times the watt's worth
  const auto limit = [&](double pooling) {
    weights.rule.session_pooling = pooling;
    return effect_for(test_gpu("P4"), weights).sustained_flops;
  };
  EXPECT_DOUBLE_EQ(limit(0), 49 * 0.02e12);
  EXPECT_NEAR(limit(1), 49 * 0.04e12, 1);  // geometric mean of 0.02 and 0.08
  EXPECT_NEAR(limit(0.5), 49 * 0.02e12 * std::sqrt(2), 1);
}

TEST(GpuEffects, RulesDifferInWhatTheyTakeFromWhom) {
  PredictorWeights weights = example_weights();
  const auto h100 = [&](ComputeRule rule) {
    weights.rule.compute = rule;
    return effect_for(test_gpu("H100-SXM5-80GB"), weights).gemm_slowdown;
  };
  EXPECT_DOUBLE_EQ(h100(ComputeRule::median), 0.25);        // of 0.1, 0.2, 0.3, 0.5
  EXPECT_DOUBLE_EQ(h100(ComputeRule::predecessor), 0.2);    // A100
  EXPECT_DOUBLE_EQ(h100(ComputeRule::pooled), 0.2 + 0.09);  // V100, A100, P100; none of Hopper
  weights.gpus.erase(weights.gpus.begin());
  weights.rule.compute = ComputeRule::predecessor;
  EXPECT_DOUBLE_EQ(effect_for(test_gpu("V100-PCIe-32GB"), weights).gemm_slowdown, 0.3);  // P100
}

TEST(GpuEffects, WithoutAPowerLimitNoRuleSetsOne) {
  PredictorWeights weights = example_weights();
  weights.rule.power_limit = false;
  EXPECT_EQ(effect_for(test_gpu("L4"), weights).sustained_flops, 0);
}

TEST(GpuEffects, OneSlowHostDoesNotRaiseTheLaunchFloor) {
  PredictorWeights weights = example_weights();
  for (TrainedGpu& gpu : weights.gpus) gpu.effect.floors.linear = 50e-6;
  weights.gpus[2].effect.floors.linear = 500e-6;
  EXPECT_DOUBLE_EQ(effect_for(test_gpu("L4"), weights).floors.linear, 50e-6);
}

}  // namespace
}  // namespace tessera
