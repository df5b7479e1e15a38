#include "workloads/program/rank_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

ParallelLayout layout_in(const char* order) {
  ParallelLayout layout;
  layout.tensor = 2;
  layout.pipeline = 2;
  layout.data = 4;
  layout.context = 2;
  layout.expert = 4;
  layout.order = parse_rank_order(order).value();
  return layout;
}

std::vector<int> group_of(int rank, GroupKind kind, const ParallelLayout& layout) {
  std::vector<int> members;
  for (int other = 0; other < layout.world_size(); ++other) {
    if (group_key(other, kind, layout) == group_key(rank, kind, layout)) members.push_back(other);
  }
  return members;
}

TEST(RankOrder, TextIsReadAndWritten) {
  for (const char* text : {"tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "tp-pp-dp-cp-ep"}) {
    EXPECT_EQ(text_of(parse_rank_order(text).value()), text);
  }
  EXPECT_EQ(text_of(kDefaultRankOrder), "tp-cp-ep-dp-pp");
  for (const char* text : {"", "tp", "tp-cp-ep-dp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-pp-",
                           "tp-cp-ep-dp-xx", "tp-cp-ep-dp-pp-tp", "-tp-cp-ep-dp"}) {
    EXPECT_FALSE(parse_rank_order(text)) << text;
  }
}

TEST(RankOrder, PositionAndRankAreInverse) {
  RankOrder order = kDefaultRankOrder;
  do {
    ParallelLayout layout = layout_in("tp-cp-ep-dp-pp");
    layout.order = order;
    for (int rank = 0; rank < layout.world_size(); ++rank)
      EXPECT_EQ(rank_of(position_of(rank, layout), layout), rank);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RankOrder, IsMegatrons) {
  // tp fastest, then cp, dp, pp: rank 11 of 2 x 2 x 4 x 2 is tensor 1, context 1, data 2, stage 0
  const RankPosition position = position_of(11, layout_in("tp-cp-ep-dp-pp"));
  EXPECT_EQ(position.tensor, 1);
  EXPECT_EQ(position.context, 1);
  EXPECT_EQ(position.data, 2);
  EXPECT_EQ(position.pipeline, 0);
}

TEST(RankOrder, PlacesTheGroups) {
  const ParallelLayout usual = layout_in("tp-cp-ep-dp-pp");
  EXPECT_THAT(group_of(0, GroupKind::tensor, usual), ElementsAre(0, 1));
  EXPECT_THAT(group_of(0, GroupKind::context, usual), ElementsAre(0, 2));
  EXPECT_THAT(group_of(0, GroupKind::expert, usual), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(group_of(0, GroupKind::expert_data, usual), ElementsAre(0, 8));
  EXPECT_THAT(group_of(0, GroupKind::pipeline, usual), ElementsAre(0, 16));
  const ParallelLayout stages_first = layout_in("pp-tp-cp-dp-ep");
  EXPECT_THAT(group_of(0, GroupKind::pipeline, stages_first), ElementsAre(0, 1));
  EXPECT_THAT(group_of(0, GroupKind::tensor, stages_first), ElementsAre(0, 2));
  // experts farther apart than the ranks that hold the same ones
  EXPECT_THAT(group_of(0, GroupKind::expert_data, stages_first), ElementsAre(0, 4));
  EXPECT_THAT(group_of(0, GroupKind::expert, stages_first), ElementsAre(0, 8, 16, 24));
}

TEST(ProcessGroups, OfAKindPartitionTheRanksAndHaveItsSize) {
  RankOrder order = kDefaultRankOrder;
  do {
    ParallelLayout layout = layout_in("tp-cp-ep-dp-pp");
    layout.order = order;
    const std::map<GroupKind, int> sizes = {{GroupKind::tensor, 2},   {GroupKind::data, 8},
                                            {GroupKind::pipeline, 2}, {GroupKind::context, 2},
                                            {GroupKind::expert, 4},   {GroupKind::expert_data, 2}};
    for (const auto& [kind, size] : sizes) {
      std::map<GroupCoordinates, int> members;
      for (int rank = 0; rank < layout.world_size(); ++rank)
        ++members[group_key(rank, kind, layout)];
      for (const auto& [key, count] : members) EXPECT_EQ(count, size);
    }
    // every expert is held once within an expert group: its members differ in the experts' key
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      std::set<GroupCoordinates> held;
      for (const int member : group_of(rank, GroupKind::expert, layout))
        held.insert(group_key(member, GroupKind::expert_data, layout));
      EXPECT_EQ(held.size(), 4u);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace tessera
