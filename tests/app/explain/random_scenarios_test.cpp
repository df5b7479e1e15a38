// Random scenarios through the whole flow. tests/bench/reliability_study runs ten thousand.
#include <gtest/gtest.h>

#include "tests/app/explain/random_scenario.h"

namespace tessera::test {
namespace {

std::string joined(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) text += " --set '" + setting + "'";
  return text;
}

TEST(RandomScenarios, CheckRefusesAHundredAsSimulateDoes) {
  const auto verdicts = refusals_of_random_scenarios(0, 100, 2);
  int refused = 0;
  for (std::size_t seed = 0; seed < verdicts.size(); ++seed) {
    EXPECT_EQ(verdicts[seed].check, verdicts[seed].simulate) << "seed " << seed;
    refused += verdicts[seed].check.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 95);
}

/// Of draws from `first` on: they run, without hang, crash or NaN, their breakdowns add up, and
/// MFU <= HFU <= 1 unless the report says why not.
void expect_runs(std::uint64_t first, int wanted) {
  constexpr int kBatch = 100;
  int valid = 0;
  int parallel = 0;
  for (std::uint64_t seed = first; valid < wanted; seed += kBatch) {
    ASSERT_LT(seed, first + 4000u) << "too few draws are valid";
    const auto runs = run_random_scenarios(seed, kBatch, 2, 30);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const RandomRun& run = runs[i];
      EXPECT_NE(run.outcome, RandomRun::Outcome::failed)
          << "seed " << seed + i << joined(random_settings(seed + i)) << "\n"
          << run.text;
      if (run.outcome != RandomRun::Outcome::ran) continue;
      ++valid;
      if (run.gpus > 1) ++parallel;
    }
  }
  EXPECT_GT(parallel, valid / 2);
}

// A thousand in four parts, which run beside each other.
TEST(RandomScenarios, AQuarterOfAThousandRunAndAddUp) {
  expect_runs(0, 250);
}
TEST(RandomScenarios, ASecondQuarterRunsAndAddsUp) {
  expect_runs(10'000, 250);
}
TEST(RandomScenarios, AThirdQuarterRunsAndAddsUp) {
  expect_runs(20'000, 250);
}
TEST(RandomScenarios, AFourthQuarterRunsAndAddsUp) {
  expect_runs(30'000, 250);
}

}  // namespace
}  // namespace tessera::test
