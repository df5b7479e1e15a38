#include "sim/longrun/checkpoint_writes.h"

#include <gtest/gtest.h>

#include "tests/sim/longrun/writing_job.h"

namespace tessera {
namespace {

/// A job's 1000 bytes in 40 s.
CheckpointCost cost() {
  CheckpointCost cost;
  cost.bytes = Bytes(1000);
  cost.to_storage = Seconds(40);
  return cost;
}

using test::idle_writers;
using test::writing_cluster;

TEST(CheckpointWrites, AStepSendsItsShareOfTheBytes) {
  EXPECT_EQ(written_in_step(cost(), Seconds(4)), Bytes(100));
  EXPECT_EQ(written_in_step(cost(), Seconds(80)), Bytes(1000));
}

TEST(CheckpointWrites, SlowTrainingByWhatTheStepsLose) {
  EXPECT_DOUBLE_EQ(write_slowdown(cost(), Seconds(4), Seconds(5)), 1.25);
  EXPECT_DOUBLE_EQ(write_slowdown(cost(), Seconds(4), Seconds(3.9)), 1);
  // The 10 s that a step of 80 s loses fall into the write: 40 s do the work of 30.
  EXPECT_DOUBLE_EQ(write_slowdown(cost(), Seconds(80), Seconds(90)), 40.0 / 30);
}

TEST(CheckpointWrites, GoAheadOfAllOthersAndNobodyWaitsForThem) {
  TimedProgram timed = idle_writers(1);
  RankProgram& stage = timed.program.stages[0];
  stage.ops.resize(2);
  stage.ops[1].waits = {0, -1};
  stage.passes = {{.begin = 0, .end = 2}};
  const TimedProgram with = with_checkpoint_writes(timed, Bytes(7));
  const RankProgram& changed = with.program.stages[0];
  ASSERT_EQ(changed.ops.size(), 3u);
  EXPECT_EQ(changed.ops[0].bytes, Bytes(4));  // of two GPUs, rounded up
  EXPECT_EQ(changed.ops[2].waits[0], 1);
  EXPECT_EQ(changed.ops[2].waits[1], -1);
  EXPECT_EQ(changed.passes[0].begin, 1);
  EXPECT_EQ(changed.passes[0].end, 3);
}

TEST(CheckpointWrites, OnlyNodesThatHoldACopySend) {
  TimedProgram timed = idle_writers(2);
  timed.program.layout.shard = 1;  // the first replica holds everything
  const TimedProgram with = checkpoint_write_alone(timed, Bytes(1000));
  // Its node has two GPUs, whose NICs share the bytes.
  EXPECT_EQ(with.program.kind_of_replica, (std::vector<std::int32_t>{1, 1, 0, 0}));
  EXPECT_TRUE(with.program.stages[0].ops.empty());
  ASSERT_EQ(with.program.stages[1].ops.size(), 1u);
  EXPECT_EQ(with.program.stages[1].ops[0].bytes, Bytes(500));
}

}  // namespace
}  // namespace tessera
