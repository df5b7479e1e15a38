#include "sim/engine/communication/communication_plan.h"

#include <map>
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/engine/program_builder.h"
#include "workloads/program/process_groups.h"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;

std::vector<int> members(const Communicators& communicators, int rank, GroupKind kind) {
  const int index = communicators.index_of(rank, kind);
  return index < 0 ? std::vector<int>{} : communicators[index].ranks;
}

TEST(Communicators, AreMegatronsGroups) {
  // tp2 pp3 dp2: rank = tensor + 2 * (data + 2 * stage); rank 5 = tensor 1, data 0, stage 1
  const Communicators communicators({.tensor = 2, .pipeline = 3, .data = 2});
  EXPECT_THAT(members(communicators, 5, GroupKind::tensor), ElementsAre(4, 5));
  EXPECT_THAT(members(communicators, 5, GroupKind::data), ElementsAre(5, 7));
  EXPECT_THAT(members(communicators, 5, GroupKind::pipeline), ElementsAre(1, 5, 9));
  EXPECT_THAT(members(communicators, 5, GroupKind::embedding), ElementsAre());
  EXPECT_THAT(members(communicators, 9, GroupKind::embedding), ElementsAre(1, 9));
  EXPECT_EQ(members(communicators, 5, GroupKind::world).size(), 12);
}

TEST(Communicators, TheEmbeddingGroupOfOneStageIsTheRankItself) {
  const Communicators communicators({.tensor = 2, .pipeline = 1, .data = 1});
  EXPECT_THAT(members(communicators, 1, GroupKind::embedding), ElementsAre(1));
}

TEST(Communicators, ShardGroupsAreNeighboursAndReplicasLieAcrossThem) {
  // data-parallel positions 0..7 are ranks 0, 2, 4, ... beside a tensor group of two
  const Communicators communicators({.tensor = 2, .pipeline = 1, .data = 8, .shard = 4});
  EXPECT_THAT(members(communicators, 3, GroupKind::shard), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(members(communicators, 3, GroupKind::replica), ElementsAre(3, 11));
  EXPECT_THAT(members(communicators, 3, GroupKind::data), ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));
}

TEST(Communicators, GroupsOfEveryKindPartitionTheirMembers) {
  for (const ParallelLayout& layout :
       {ParallelLayout{.tensor = 2, .pipeline = 3, .data = 4, .shard = 2},
        ParallelLayout{.tensor = 1, .pipeline = 1, .data = 6, .shard = 6},
        ParallelLayout{.tensor = 4, .pipeline = 2, .data = 3, .shard = 1}}) {
    const Communicators communicators(layout);
    std::map<std::pair<GroupKind, int>, int> count;
    for (const Communicator& group : communicators.all()) {
      for (const int rank : group.ranks) ++count[{group.kind, rank}];
    }
    for (const GroupDefinition& definition : kGroupDefinitions) {
      if (definition.kind == GroupKind::listed) continue;  // of a program, not of a layout
      for (int rank = 0; rank < layout.world_size(); ++rank) {
        const int expected = is_group_member(rank, definition.kind, layout) ? 1 : 0;
        EXPECT_EQ((count[{definition.kind, rank}]), expected);
      }
    }
  }
}

TEST(CommunicationPlan, LinksOfOneCommunicatorAloneNeedNoFlow) {
  ProgramBuilder builder({.tensor = 4, .pipeline = 1, .data = 1});
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm);
  const CommunicationPlan plan(builder.build());
  const int communicator = plan.communicators().index_of(0, GroupKind::tensor);
  EXPECT_FALSE(plan.collective(communicator, OpKind::all_reduce, 1_MiB).path.valid());
  EXPECT_GT(plan.collective(communicator, OpKind::all_reduce, 1_MiB).delay, 0_s);
}

TEST(CommunicationPlan, LinksOfTwoStreamsNeedFlows) {
  ProgramBuilder builder({.tensor = 4, .pipeline = 1, .data = 1});
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm);
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::data_comm);
  const CommunicationPlan plan(builder.build());
  const int communicator = plan.communicators().index_of(0, GroupKind::tensor);
  EXPECT_TRUE(plan.collective(communicator, OpKind::all_reduce, 1_MiB).path.valid());
}

TEST(CommunicationPlan, TransfersOverTheSameLinksShareAPath) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  for (int tag = 0; tag < 5; ++tag) builder.send(0, 1, tag, 1_MiB);
  EXPECT_EQ(CommunicationPlan(builder.build()).network().paths.size(), 1);
}

TEST(CommunicationPlan, ATransferThatTheProgramLacksIsAnError) {
  const CommunicationPlan plan(ProgramBuilder().build());
  EXPECT_THROW(plan.collective(0, OpKind::all_reduce, 1_MiB), std::out_of_range);
  EXPECT_THROW(plan.message(0, 1, 1_MiB), std::out_of_range);
}

}  // namespace
}  // namespace tessera::test
