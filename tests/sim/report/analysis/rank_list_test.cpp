#include "sim/report/analysis/rank_list.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(RankList, ShortensRunsOfEqualDistance) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({5}), "5");
  EXPECT_EQ(rank_list({0, 1}), "0, 1");
  EXPECT_EQ(rank_list({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(rank_list({0, 8, 16, 24}), "0, 8 .. 24");
  EXPECT_EQ(rank_list({0, 1, 2, 8, 9, 10}), "0-2, 8-10");
}

TEST(RankList, ClassesListWhoStandsForWhom) {
  const RankFolding folding{.representative = {0, 1, 0, 1}, .refused = {}};
  const auto classes = rank_classes(folding);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].rank, 0);
  EXPECT_EQ(classes[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(classes[1].ranks, (std::vector<int>{1, 3}));
  EXPECT_TRUE(rank_classes({}).empty());
}

}  // namespace
}  // namespace tessera
