#include "sim/longrun/checkpoint_writes.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// 1000 bytes of a writer in 40 s.
CheckpointCost cost() {
  CheckpointCost cost;
  cost.bytes_per_gpu = Bytes(1000);
  cost.to_storage = Seconds(40);
  return cost;
}

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
  TimedProgram timed{.program = {},
                     .segments = {},
                     .topology = Topology(single_gpu_cluster([] {
                       GpuSpec gpu;
                       gpu.id = "gpu";
                       gpu.sm_count = 1;
                       gpu.boost_clock = Hertz(1e9);
                       gpu.fp32 = 1_TFLOPS;
                       gpu.memory = 1_GiB;
                       gpu.memory_bandwidth = 1_GBps;
                       gpu.pcie_generation = 4;
                       gpu.pcie_bandwidth = 32_GBps;
                       return gpu;
                     }())),
                     .communication_host_time = {},
                     .memory_capacity = {}};
  RankProgram stage;
  stage.ops.resize(2);
  stage.ops[1].waits = {0, -1};
  stage.passes = {{.begin = 0, .end = 2}};
  timed.program.stages = {stage};
  const TimedProgram with = with_checkpoint_writes(timed, Bytes(7));
  const RankProgram& changed = with.program.stages[0];
  ASSERT_EQ(changed.ops.size(), 3u);
  EXPECT_EQ(changed.ops[0].bytes, Bytes(7));
  EXPECT_EQ(changed.ops[2].waits[0], 1);
  EXPECT_EQ(changed.ops[2].waits[1], -1);
  EXPECT_EQ(changed.passes[0].begin, 1);
  EXPECT_EQ(changed.passes[0].end, 3);
}

}  // namespace
}  // namespace tessera
