#include "sim/report/analysis/step_distribution.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

std::vector<StepSample> steps_of(int count) {
  std::vector<StepSample> steps;
  for (int i = count; i > 0; --i) steps.push_back({.time = Seconds(i), .straggler = {}});
  return steps;
}

TEST(StepDistribution, InterpolatesPercentilesBetweenSortedTimes) {
  const StepDistribution hundred = distribution_of(steps_of(101));  // 1 s to 101 s
  EXPECT_DOUBLE_EQ(hundred.mean.value(), 51);
  EXPECT_DOUBLE_EQ(hundred.p5.value(), 6);
  EXPECT_DOUBLE_EQ(hundred.p50.value(), 51);
  EXPECT_DOUBLE_EQ(hundred.p95.value(), 96);
  EXPECT_DOUBLE_EQ(hundred.p99.value(), 100);
  EXPECT_DOUBLE_EQ(hundred.max.value(), 101);
  EXPECT_DOUBLE_EQ(distribution_of(steps_of(2)).p50.value(), 1.5);
}

TEST(StepDistribution, KeepsTheOrderOfTheSteps) {
  EXPECT_EQ(distribution_of(steps_of(3)).times, (std::vector<Seconds>{3_s, 2_s, 1_s}));
}

TEST(StepDistribution, NamesTheMostFrequentStraggler) {
  std::vector<StepSample> steps = steps_of(3);
  EXPECT_FALSE(distribution_of(steps).straggler.has_value());
  steps[0].straggler = Straggler{.rank = 3, .waited = 9_s, .longest = 4_s};
  steps[1].straggler = Straggler{.rank = 1, .waited = 9_s, .longest = 9_s};
  steps[2].straggler = Straggler{.rank = 3, .waited = 3_s, .longest = 2_s};
  const auto straggler = distribution_of(steps).straggler;
  ASSERT_TRUE(straggler.has_value());
  EXPECT_EQ(straggler->rank, 3);
  EXPECT_EQ(straggler->steps, 2);
  EXPECT_EQ(straggler->longest, 3_s);
}

}  // namespace
}  // namespace tessera
