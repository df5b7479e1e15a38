#include "sim/report/analysis/straggler.h"

#include <gtest/gtest.h>

#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using namespace tessera::testing;

/// A collective that the rank joined at `start` and `last` completed at `all_joined`.
void record_collective(Timeline& timeline, int op, double start, double all_joined, int last) {
  record_op(timeline, op, start, all_joined + 0.5);
  timeline.ops.back().transfer_start = Seconds(all_joined);
  timeline.ops.back().last_rank = last;
}

/// Four replicas of two tensor-parallel GPUs: GPU 3 is a second late. GPU 2 waits for it and is a
/// second late for its replicas. GPU 0 stands for those that are alike.
TEST(Straggler, IsTheCauseAndNotWhoeverHadToWaitForIt) {
  TimedProgram timed = handmade_program({.tensor = 2, .data = 4});
  const auto tensor = add_op(timed, 0, all_reduce_over(GroupKind::tensor, -1));
  add_op(timed, 0, all_reduce_over(GroupKind::data, tensor));
  Timeline timeline;
  timeline.folding.representative = {0, 0, 2, 3, 0, 0, 0, 0};
  record_collective(timeline, 0, 0, 0, 0);
  record_collective(timeline, 1, 0.5, 1.5, 2);
  const std::size_t second = timeline.ops.size();
  record_collective(timeline, 0, 0, 1, 3);
  record_collective(timeline, 1, 1.5, 1.5, 2);
  record_collective(timeline, 0, 1, 1, 3);
  record_collective(timeline, 1, 1.5, 1.5, 3);
  ASSERT_EQ(second, 2u);
  const auto straggler = find_straggler(TimelineIndex(timed, timeline));
  ASSERT_TRUE(straggler.has_value());
  EXPECT_EQ(straggler->rank, 3);
  EXPECT_EQ(straggler->longest, 1_s);
  EXPECT_EQ(straggler->waited, 7_s);  // GPU 2, and the six that GPU 0 stands for
}

TEST(Straggler, WhoIsLateByItselfIsNamedThoughItHasWaitedForOthers) {
  TimedProgram timed = handmade_program({.tensor = 1, .data = 2});
  const auto first = add_op(timed, 0, all_reduce_over(GroupKind::data, -1));
  add_op(timed, 0, all_reduce_over(GroupKind::data, first));
  Timeline timeline;
  record_collective(timeline, 0, 1, 1, 0);    // GPU 0 a second late
  record_collective(timeline, 1, 1.5, 4, 1);  // and then waits 2.5 s for GPU 1
  record_collective(timeline, 0, 0, 1, 0);
  record_collective(timeline, 1, 4, 4, 1);
  const auto straggler = find_straggler(TimelineIndex(timed, timeline));
  ASSERT_TRUE(straggler.has_value());
  EXPECT_EQ(straggler->rank, 1);
  EXPECT_EQ(straggler->waited, Seconds(2.5));
}

}  // namespace
}  // namespace tessera
