// What a larger model or another machine does to the step time of random scenarios.
// tests/bench/relations_study runs ten thousand.
#include "tests/app/explain/relations.h"

#include <gtest/gtest.h>

#include "tests/app/explain/random_scenario.h"

namespace tessera::test {
namespace {

std::string described(std::uint64_t seed, const RelationsRun& run) {
  std::string text = "seed " + std::to_string(seed);
  for (const std::string& setting : random_settings(seed)) text += " --set '" + setting + "'";
  for (const BrokenRelation& broken : run.broken)
    text += "\n  " + broken.change + ": " + std::to_string(broken.before) + " -> " +
            std::to_string(broken.after);
  return text + "\n" + run.error;
}

/// Relations of draws from `first` on until `wanted` were simulated.
void expect_relations_hold(std::uint64_t first, int wanted) {
  constexpr int kBatch = 40;
  int simulated = 0;
  for (std::uint64_t seed = first; simulated < wanted; seed += kBatch) {
    ASSERT_LT(seed, first + 1000) << "too few draws are valid";
    const auto runs = run_relations(seed, kBatch, 2);
    for (std::size_t i = 0; i < runs.size() && simulated < wanted; ++i) {
      simulated += runs[i].refused ? 0 : 1;
      EXPECT_TRUE(runs[i].broken.empty() && runs[i].error.empty()) << described(seed + i, runs[i]);
    }
  }
}

TEST(Relations, LargerModelsAndOtherMachinesMoveTimesAndPeaksOfFiftyRandomScenariosTheRightWay) {
  expect_relations_hold(0, 50);
}

TEST(Relations, AndThoseOfFiftyMore) {
  expect_relations_hold(100'000, 50);
}

}  // namespace
}  // namespace tessera::test
