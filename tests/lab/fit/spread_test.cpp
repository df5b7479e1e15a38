#include "predictor/spread.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lab/fit/fp32/spread_fit.h"
#include "lab/fit/train.h"
#include "predictor/kernel_predictor.h"
#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

TEST(Interval, HoldsEightyPercentOfANormalDistribution) {
  // The normal distribution has 10 % above 1.2816 standard deviations.
  const Interval interval = interval_80(1_s, {.gpu = 0.3, .shape = 0.4});
  EXPECT_NEAR(std::log(interval.high.value()), 1.2816 * 0.5, 1e-12);
  EXPECT_NEAR(interval.low.value() * interval.high.value(), 1, 1e-12);
}

TEST(SpreadSum, TheGpuPartStaysTheShapePartAveragesOut) {
  SpreadSum sum;
  for (int i = 0; i < 100; ++i) sum.add(2_s, {.gpu = 0.2, .shape = 0.5});
  EXPECT_NEAR(sum.relative().gpu, 0.2, 1e-12);
  EXPECT_NEAR(sum.relative().shape, 0.05, 1e-12);  // 0.5 / sqrt(100)
  EXPECT_EQ(SpreadSum().relative().gpu, 0);
}

/// GPUs that differ by what no rule can know, so that leaving one out shows an offset.
TrainingSet four_gpus(const ScratchFolder& folder, double a100_slowdown = 1.6) {
  folder.write("fp32.csv", kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.2, 1.2) +
                               synthetic_rows("A100-PCIe-40GB", a100_slowdown, a100_slowdown) +
                               synthetic_rows("P100-PCIe-16GB", 1.3, 1.3) +
                               synthetic_rows("A40", 1.5, 1.5));
  return read_training_set(folder.path(), test_gpu);
}

TEST(Spreads, AGpuByRuleIsLessCertainThanAMeasuredOne) {
  const ScratchFolder folder;
  const TrainingSet set = four_gpus(folder);
  const Folds folds(set.gpus, FoldDepth::one);
  const Spreads spreads = fit_spreads(folds, {}, folds.size());
  for (std::size_t c = 0; c < kSpreadClasses; ++c) {
    EXPECT_GT(spreads.by_rule[c].gpu, spreads.measured[c].gpu) << c;
    EXPECT_GT(spreads.by_rule[c].gpu, 0.05) << c;  // the slowdowns differ by log(1.6 / 1.2) = 0.29
    EXPECT_LT(spreads.by_rule[c].gpu, 0.6) << c;
  }
}

TEST(Spreads, TheJudgeTakesNoPart) {
  const ScratchFolder folder;
  const auto without_a100 = [&](double a100_slowdown) {
    const TrainingSet set = four_gpus(folder, a100_slowdown);
    return fit_spreads(Folds(set.gpus, FoldDepth::two), {}, 1);
  };
  const Spreads one = without_a100(1.6), other = without_a100(4.8);
  for (std::size_t c = 0; c < kSpreadClasses; ++c) {
    EXPECT_EQ(one.by_rule[c].gpu, other.by_rule[c].gpu) << c;
    EXPECT_EQ(one.by_rule[c].shape, other.by_rule[c].shape) << c;
    EXPECT_EQ(one.measured[c].shape, other.measured[c].shape) << c;
  }
}

TEST(Spreads, OutOfRangeInputsWidenThemByTheirDistance) {
  const PredictorWeights weights = load_weights(committed_weights());
  const auto spread = [&](std::int64_t m) {
    return make_predictor(PredictorForm::tessera, test_gpu("V100-PCIe-32GB"), weights)
        ->predict(linear_kernel(m, 4096, 4096));
  };
  const KernelPrediction within = spread(8192), twice = spread(2 * 8192), eight = spread(8 * 8192);
  EXPECT_FALSE(within.extrapolated);
  EXPECT_EQ(twice.extrapolated.input, "m");
  EXPECT_DOUBLE_EQ(eight.extrapolated.factor, 8);
  EXPECT_LT(within.spread.shape, twice.spread.shape);
  EXPECT_LT(twice.spread.shape, eight.spread.shape);
  EXPECT_EQ(within.spread.gpu, eight.spread.gpu);
}

TEST(Spreads, FollowTheProvenanceOfTheGpu) {
  const PredictorWeights weights = load_weights(committed_weights());
  const auto gpu_spread = [&](const char* id) {
    return make_predictor(PredictorForm::tessera, test_gpu(id), weights)
        ->predict(linear_kernel(4096, 4096, 4096))
        .spread.gpu;
  };
  EXPECT_EQ(gpu_spread("V100-PCIe-32GB"), weights.spreads.measured[0].gpu);
  EXPECT_EQ(gpu_spread("H100-SXM5-80GB"), weights.spreads.by_rule[0].gpu);
}

}  // namespace
}  // namespace tessera
