#include "sim/engine/errors/program_check.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ParallelLayout kTwoStages{.tensor = 1, .pipeline = 2, .data = 1};

std::vector<std::string> problems_of(const TimedProgram& program) {
  std::vector<std::string> lines;
  try {
    check_program(program);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) lines.push_back(problem.text());
  }
  return lines;
}

TEST(ProgramCheck, AcceptsAProgramThatFits) {
  ProgramBuilder builder(kTwoStages);
  builder.kernels(0, 1_ms);
  builder.send(0, 1, 0, 1_MiB, {0, -1});
  builder.recv(1, 0, 0, 1_MiB);
  EXPECT_THAT(problems_of(builder.build()), IsEmpty());
}

TEST(ProgramCheck, MoreRanksThanGpus) {
  const ProgramBuilder builder({.tensor = 8, .pipeline = 1, .data = 1});
  EXPECT_THAT(problems_of(builder.on(switched_node(4))),
              ElementsAre("layout: 8 ranks do not fit on 4 GPUs; use a larger cluster or less "
                          "parallelism"));
}

TEST(ProgramCheck, StagesAndSegmentsThatDoNotMatch) {
  ProgramBuilder builder(kTwoStages);
  builder.kernels(0, 1_ms);
  TimedProgram program = builder.build();
  program.program.stages.pop_back();
  program.segments.clear();
  EXPECT_THAT(problems_of(program), ElementsAre("program: 1 stage programs for 2 pipeline stages",
                                                "program: 0 timed segments for 1 segments"));
}

/// Three ranks with programs of their own; all call a collective of the listed group {0, 2}.
TimedProgram with_listed_group(std::initializer_list<int> callers, Bytes of_last = 1_MiB) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 3, .data = 1});
  for (const int rank : callers) {
    const Bytes bytes = rank == 2 ? of_last : 1_MiB;
    builder.all_reduce(rank, GroupKind::listed, bytes, StreamKind::tensor_comm);
    builder.last(rank).listed_group = 0;
  }
  TimedProgram program = builder.build();
  program.program.listed_groups = {{0, 2}};
  return program;
}

TEST(ProgramCheck, ListedGroupsHoldThoseWhoCallThem) {
  EXPECT_THAT(problems_of(with_listed_group({0, 2})), IsEmpty());
  EXPECT_THAT(problems_of(with_listed_group({0, 1, 2})),
              ElementsAre("stage 1 op 0: runs in listed group 0, which does not hold its rank"));
}

TEST(ProgramCheck, MembersOfAListedGroupCallTheSame) {
  EXPECT_THAT(problems_of(with_listed_group({0, 2}, 2_MiB)),
              ElementsAre("rank 2: collective 0 of listed group 0 is all_reduce of 2097152 bytes, "
                          "on rank 0 all_reduce of 1048576 bytes"));
  EXPECT_THAT(problems_of(with_listed_group({0})),
              ElementsAre("rank 2: collective 0 of listed group 0 is missing, on rank 0 all_reduce "
                          "of 1048576 bytes"));
}

TEST(ProgramCheck, ListedGroupsAreAscendingAndOfProgramsOfTheirOwn) {
  TimedProgram program = with_listed_group({});
  program.program.listed_groups = {{2, 0}};
  EXPECT_THAT(problems_of(program),
              ElementsAre("listed group 0: is not an ascending list of ranks"));
  ProgramBuilder builder({.tensor = 2, .pipeline = 1, .data = 1});
  TimedProgram shared = builder.build();
  shared.program.listed_groups = {{0, 1}};
  EXPECT_THAT(problems_of(shared),
              ElementsAre("program: lists groups although stages have several ranks"));
}

TEST(ProgramCheck, TimesThatAreNotTimes) {
  ProgramBuilder builder;
  builder.kernels(0, -1_ms);
  TimedProgram program = builder.build();
  program.segments[0].host_time = Seconds(std::numeric_limits<double>::infinity());
  EXPECT_THAT(problems_of(program), ElementsAre("segment 0 (segment0): duration -0.001000 s",
                                                "segment 0 (segment0): host time inf s"));
}

TEST(ProgramCheck, ReferencesToWhatDoesNotExist) {
  ProgramBuilder builder(kTwoStages);
  builder.kernels(0, 1_ms, {9, -1});
  builder.last(0).segment = SegmentId(4);
  builder.send(1, 2, 0, Bytes(-1));
  EXPECT_THAT(
      problems_of(builder.build()),
      ElementsAre("stage 0 op 0: waits for op 9 of 1",
                  "stage 0 op 0: runs segment 4, which does not exist", "stage 1 op 0: -1 bytes",
                  "stage 1 op 0: exchanges a message with stage 2"));
}

TEST(ProgramCheck, ATagUsedTwice) {
  ProgramBuilder builder(kTwoStages);
  builder.send(0, 1, 3, 1_MiB);
  builder.send(0, 1, 3, 1_MiB);
  EXPECT_THAT(problems_of(builder.build()),
              ElementsAre("stage 0 op 1: a second send with tag 3 and stage 1; number the messages "
                          "between two stages"));
}

TEST(ProgramCheck, StagesThatDisagreeOnACollective) {
  ProgramBuilder builder(kTwoStages);
  builder.all_reduce(0, GroupKind::world, Bytes(100), StreamKind::compute);
  builder.all_reduce(1, GroupKind::world, Bytes(200), StreamKind::compute);
  EXPECT_THAT(problems_of(builder.build()),
              ElementsAre("stage 1: collective 0 of the world group is all_reduce of 200 bytes, on "
                          "stage 0 all_reduce of 100 bytes"));
}

TEST(ProgramCheck, TheEmbeddingGroupBetweenFirstAndLastStage) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 3, .data = 1});
  builder.all_reduce(1, GroupKind::embedding, Bytes(100), StreamKind::compute);
  EXPECT_THAT(problems_of(builder.build()),
              ElementsAre("stage 1 op 0: all_reduce of the embedding group, which has only the "
                          "first and the last stage"));
}

}  // namespace
}  // namespace tessera::test
