#include "sim/trace/alike_ranks.h"

#include <gtest/gtest.h>

#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using namespace tessera::testing;

using Positions = std::vector<std::size_t>;

/// Every rank runs one segment and nothing else.
TimedProgram one_op_each(ParallelLayout layout) {
  TimedProgram timed = handmade_program(layout);
  const SegmentId segment = add_segment(timed, "forward", Phase::forward, {1.0});
  for (int stage = 0; stage < layout.pipeline; ++stage)
    add_op(timed, stage, run_of(segment, Phase::forward));
  return timed;
}

/// The one op of every rank begins with the step.
Timeline ends(const std::vector<double>& by_rank) {
  Timeline timeline;
  for (const double end : by_rank) record_op(timeline, 0, 0, end);
  return timeline;
}

Positions alike(const TimedProgram& timed, const Timeline& timeline) {
  return first_alike(timed, TimelineIndex(timed, timeline));
}

TEST(AlikeRanks, ReplicasOfEqualTimesAre) {
  const TimedProgram timed = one_op_each({.data = 4});
  EXPECT_EQ(alike(timed, ends({1, 1, 1, 1})), (Positions{0, 0, 0, 0}));
}

TEST(AlikeRanks, OneThatEndsLaterIsNot) {
  const TimedProgram timed = one_op_each({.data = 4});
  EXPECT_EQ(alike(timed, ends({1, 2, 2, 1})), (Positions{0, 1, 1, 0}));
}

TEST(AlikeRanks, OneThatMetItsPeersLaterIsNot) {
  const TimedProgram timed = one_op_each({.data = 2});
  Timeline timeline = ends({2, 2});
  timeline.ops[1].transfer_start = 1_s;
  EXPECT_EQ(alike(timed, timeline), (Positions{0, 1}));
}

TEST(AlikeRanks, StagesAreNotThoughTheirTimesAreEqual) {
  const TimedProgram timed = one_op_each({.pipeline = 2});
  EXPECT_EQ(alike(timed, ends({1, 1})), (Positions{0, 1}));
}

// A breakdown asks when the message of the other stage was sent.
TEST(AlikeRanks, StagesOfPipelinesThatDifferElsewhereAreNot) {
  const TimedProgram timed = one_op_each({.pipeline = 2, .data = 2});
  std::vector<double> by_rank(4, 1);
  const int slower = rank_of({.pipeline = 0, .data = 1}, timed.program.layout);
  by_rank[static_cast<std::size_t>(slower)] = 1.5;
  EXPECT_EQ(alike(timed, ends(by_rank)), (Positions{0, 1, 2, 3}));
}

TEST(AlikeRanks, WhereKernelsVaryNoneAre) {
  TimedProgram timed = one_op_each({.data = 2});
  timed.paces.kernel_jitter = 0.1;
  EXPECT_EQ(alike(timed, ends({1, 1})), (Positions{0, 1}));
}

TEST(AlikeRanks, OneThatWaitedForMemoryLetsNoneBe) {
  const TimedProgram timed = one_op_each({.data = 2});
  Timeline timeline = ends({2, 2});
  timeline.memory_stalls = {{.rank = 1, .op = 0, .start = 0_s, .end = 1_s}};
  EXPECT_EQ(alike(timed, timeline), (Positions{0, 1}));
}

// More kinds than a rank is held against: those beyond are missed, none is taken for another.
TEST(AlikeRanks, ManyKindsAreNotMixedUp) {
  const TimedProgram timed = one_op_each({.data = 32});
  std::vector<double> by_rank;
  for (int rank = 0; rank < 32; ++rank) by_rank.push_back(1 + rank % 16);
  const Positions first = alike(timed, ends(by_rank));
  for (std::size_t rank = 0; rank < 32; ++rank)
    EXPECT_EQ(first[rank], rank % 16 < 8 ? rank % 16 : rank) << rank;
}

}  // namespace
}  // namespace tessera
