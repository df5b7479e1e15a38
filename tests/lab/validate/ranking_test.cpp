#include "lab/validate/studies/ranking.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::ElementsAre;

TEST(AverageRanks, EqualValuesShareTheMeanOfTheirRanks) {
  EXPECT_THAT(average_ranks({30, 10, 20}), ElementsAre(3, 1, 2));
  EXPECT_THAT(average_ranks({5, 7, 5, 1}), ElementsAre(2.5, 4, 2.5, 1));
  EXPECT_THAT(average_ranks({2, 2, 2}), ElementsAre(2, 2, 2));
  EXPECT_TRUE(average_ranks({}).empty());
}

// Without ties: 1 - 6 sum(d^2) / (n (n^2 - 1)); d = 0, 1, 1, 1, 1: 1 - 6 * 4 / (5 * 24).
TEST(Spearman, IsTheFormulaOfRankDifferencesWithoutTies) {
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4, 5}, {10, 30, 20, 50, 40}), 1 - 24.0 / 120);
}

// Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4; mean 2.5. Products of the deviations: 2.25 + 0 + 0 + 2.25;
// squares: 2.25 + 0 + 0 + 2.25 = 4.5 and 2.25 + 0.25 + 0.25 + 2.25 = 5.
TEST(Spearman, TiesGetAverageRanks) {
  EXPECT_DOUBLE_EQ(*spearman({7, 8, 8, 9}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
}

TEST(Spearman, SeesOrderAlone) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0.1, 10);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> a, b, grown, reversed;
    for (int i = 0; i < 12; ++i) {
      a.push_back(any(random));
      b.push_back(any(random));
      grown.push_back(std::exp(3 * a.back()));
      reversed.push_back(-a.back());
    }
    EXPECT_DOUBLE_EQ(*spearman(a, a), 1);
    EXPECT_DOUBLE_EQ(*spearman(a, reversed), -1);
    EXPECT_DOUBLE_EQ(*spearman(a, b), *spearman(grown, b));
    EXPECT_DOUBLE_EQ(*spearman(a, b), *spearman(b, a));
  }
}

TEST(Spearman, IsUnknownWhereASideDoesNotVary) {
  EXPECT_FALSE(spearman({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(spearman({1, 2, 3}, {4, 4, 4}));
  EXPECT_FALSE(spearman({1}, {1}));
}

// Simulated fastest is the second, which was measured with 11; the best measured one has 10.
TEST(Regret, IsHowMuchSlowerTheLayoutRankedFirstIsThanTheBest) {
  EXPECT_NEAR(regret_pct({10, 11, 30}, {5, 4, 9}), 10, 1e-12);
  EXPECT_DOUBLE_EQ(regret_pct({10, 11, 30}, {4, 5, 9}), 0);
  EXPECT_NEAR(regret_pct({10, 11, 30}, {4, 5, 4}), 200, 1e-12) << "a tie: the slower counts";
}

std::vector<RankedRun> group(const std::string& source, const std::string& model,
                             const std::vector<double>& measured,
                             const std::vector<double>& simulated) {
  std::vector<RankedRun> runs;
  for (std::size_t i = 0; i < measured.size(); ++i)
    runs.push_back({source, model, 8, "", measured[i], simulated[i]});
  return runs;
}

TEST(RankLayouts, MeansAreOverGroupsAndPooledOverRows) {
  std::vector<RankedRun> runs = group("lab", "small", {1, 2, 3, 4, 5}, {1, 3, 2, 5, 4});
  const auto large = group("lab", "large", {11, 12, 13, 14, 15}, {12, 11, 13, 14, 15});
  const auto few = group("lab", "few", {1, 2, 3, 4}, {4, 3, 2, 1});
  runs.insert(runs.end(), large.begin(), large.end());
  runs.insert(runs.end(), few.begin(), few.end());
  const Ranking ranking = rank_layouts(runs);
  ASSERT_EQ(ranking.groups.size(), 2u) << "four rows are too few to rank";
  EXPECT_EQ(ranking.groups[0].model, "large");
  EXPECT_DOUBLE_EQ(*ranking.groups[0].spearman, 0.9);  // d = 1, 1: 1 - 12 / 120
  EXPECT_NEAR(ranking.groups[0].regret_pct, 100.0 / 11, 1e-12);
  EXPECT_DOUBLE_EQ(*ranking.groups[1].spearman, 0.8);
  ASSERT_EQ(ranking.sources.size(), 1u);
  EXPECT_EQ(ranking.sources[0].source, "lab");
  EXPECT_EQ(ranking.sources[0].rows, 10);
  EXPECT_DOUBLE_EQ(*ranking.sources[0].mean_spearman, 0.85);
  // All of "large" rank above all of "small": d^2 sums to 4 + 2 over ten rows.
  EXPECT_DOUBLE_EQ(*ranking.sources[0].pooled_spearman, 1 - 6 * 6.0 / (10 * 99));
  EXPECT_NEAR(ranking.sources[0].mean_regret_pct, 50.0 / 11, 1e-12);
  EXPECT_NEAR(ranking.all.max_regret_pct, 100.0 / 11, 1e-12);
}

TEST(RankLayouts, SourcesAndNumbersOfGpusStayApart) {
  std::vector<RankedRun> runs = group("a", "m", {1, 2, 3}, {1, 2, 3});
  for (RankedRun run : group("b", "m", {1, 2, 3}, {1, 2, 3})) runs.push_back(run);
  for (RankedRun run : group("a", "m", {1, 2, 3}, {1, 2, 3})) {
    run.n_gpus = 16;
    runs.push_back(run);
  }
  EXPECT_TRUE(rank_layouts(runs).groups.empty());
  EXPECT_EQ(rank_layouts(runs).all.groups, 0);
}

}  // namespace
}  // namespace tessera
