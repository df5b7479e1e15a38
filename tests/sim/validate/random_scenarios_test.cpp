// Random scenarios through the whole flow. tests/bench/reliability_study runs ten thousand.
#include <gtest/gtest.h>

#include "tests/sim/validate/random_scenario.h"

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

TEST(RandomScenarios, TwoHundredValidOnesRunWithoutHangCrashOrNaN) {
  constexpr int kValid = 200;
  constexpr int kBatch = 100;
  int valid = 0;
  int parallel = 0;
  for (std::uint64_t seed = 0; valid < kValid; seed += kBatch) {
    ASSERT_LT(seed, 4000u) << "too few draws are valid";
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

}  // namespace
}  // namespace tessera::test
