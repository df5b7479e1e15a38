#include "sim/longrun/checkpoint_writes.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// A job's 1000 bytes in 40 s.
CheckpointCost cost() {
  CheckpointCost cost;
  cost.bytes = Bytes(1000);
  cost.to_storage = Seconds(40);
  return cost;
}

/// `nodes` of two GPUs with a NIC of 10 GB/s each.
ClusterSpec cluster(int nodes) {
  GpuSpec gpu;
  gpu.id = "gpu";
  gpu.sm_count = 1;
  gpu.boost_clock = Hertz(1e9);
  gpu.fp32 = 1_TFLOPS;
  gpu.memory = 1_GiB;
  gpu.memory_bandwidth = 1_GBps;
  gpu.pcie_generation = 4;
  gpu.pcie_bandwidth = 64_GBps;
  ClusterSpec spec = single_gpu_cluster(gpu);
  spec.node_count = nodes;
  spec.node.gpu_count = 2;
  spec.node.nic_count = 2;
  spec.node.nic_bandwidth = 10_GBps;
  return spec;
}

/// A replica on every GPU, which does nothing.
TimedProgram idle_job(int nodes) {
  TimedProgram timed{.program = {},
                     .segments = {},
                     .topology = Topology(cluster(nodes)),
                     .communication_host_time = {},
                     .memory_capacity = {}};
  timed.program.layout.data = 2 * nodes;
  timed.program.layout.shard = 2 * nodes;  // every replica holds a part
  timed.program.stages.resize(1);
  return timed;
}

double seconds_of(const TimedProgram& timed) {
  return forked([&] { return step_time_of(timed).value(); });
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
  TimedProgram timed = idle_job(1);
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
  TimedProgram timed = idle_job(2);
  timed.program.layout.shard = 1;  // the first replica holds everything
  const TimedProgram with = checkpoint_write_alone(timed, Bytes(1000));
  // Its node has two GPUs, whose NICs share the bytes.
  EXPECT_EQ(with.program.kind_of_replica, (std::vector<std::int32_t>{1, 1, 0, 0}));
  EXPECT_TRUE(with.program.stages[0].ops.empty());
  ASSERT_EQ(with.program.stages[1].ops.size(), 1u);
  EXPECT_EQ(with.program.stages[1].ops[0].bytes, Bytes(500));
}

TEST(CheckpointWrites, TakeTheirNicsRateWhereNoStorageLimitsThem) {
  // 80 GB over 4 nodes with 2 NICs of 10 GB/s each.
  const TimedProgram alone = checkpoint_write_alone(idle_job(4), Bytes(80'000'000'000));
  EXPECT_NEAR(seconds_of(alone), 1, 1e-3);
}

TEST(CheckpointWrites, OfAllNodesShareTheStorage) {
  // 80 GB into 5 GB/s take 16 s, whether four nodes write or one.
  for (const int nodes : {1, 4}) {
    const TimedProgram job = with_storage(idle_job(nodes), 5_GBps);
    EXPECT_NEAR(seconds_of(checkpoint_write_alone(job, Bytes(80'000'000'000))), 16, 1e-3);
  }
  // A storage of 200 GB/s is faster than their NICs.
  const TimedProgram fast = with_storage(idle_job(4), 200_GBps);
  EXPECT_NEAR(seconds_of(checkpoint_write_alone(fast, Bytes(80'000'000'000))), 1, 1e-3);
}

TEST(CheckpointWrites, CrossTheFabric) {
  // Two leaves of two nodes each, whose uplinks carry a quarter of what comes from below: 40 / 4
  // GB/s. The storage stands behind a third leaf; of each leaf 40 GB have to leave over 10 GB/s.
  TimedProgram job = idle_job(4);
  ClusterSpec spec = cluster(4);
  spec.fabric.kind = FabricKind::clos;
  spec.fabric.nodes_per_leaf = 2;
  spec.fabric.spines = 1;
  spec.fabric.leaf_oversubscription = 4;
  job.topology = Topology(spec);
  const TimedProgram alone =
      checkpoint_write_alone(with_storage(job, 80_GBps), Bytes(80'000'000'000));
  EXPECT_GT(seconds_of(alone), 3.99);
}

}  // namespace
}  // namespace tessera
