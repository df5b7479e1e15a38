// The write of a checkpoint, simulated over the links of its cluster.
#include <gtest/gtest.h>

#include "sim/longrun/checkpoint_writes.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// `nodes` of two GPUs with a NIC of 10 GB/s each.
ClusterSpec writing_cluster(int nodes) {
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
TimedProgram idle_writers(int nodes) {
  TimedProgram timed{.program = {},
                     .segments = {},
                     .topology = Topology(writing_cluster(nodes)),
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

TEST(CheckpointOnLinks, TakeTheirNicsRateWhereNoStorageLimitsThem) {
  // 80 GB over 4 nodes with 2 NICs of 10 GB/s each.
  const TimedProgram alone = checkpoint_write_alone(idle_writers(4), Bytes(80'000'000'000));
  EXPECT_NEAR(seconds_of(alone), 1, 1e-3);
}

TEST(CheckpointOnLinks, OfAllNodesShareTheStorage) {
  // 80 GB into 5 GB/s take 16 s, whether four nodes write or one.
  for (const int nodes : {1, 4}) {
    const TimedProgram job = with_storage(idle_writers(nodes), 5_GBps);
    EXPECT_NEAR(seconds_of(checkpoint_write_alone(job, Bytes(80'000'000'000))), 16, 1e-3);
  }
  // A storage of 200 GB/s is faster than their NICs.
  const TimedProgram fast = with_storage(idle_writers(4), 200_GBps);
  EXPECT_NEAR(seconds_of(checkpoint_write_alone(fast, Bytes(80'000'000'000))), 1, 1e-3);
}

TEST(CheckpointOnLinks, CrossTheFabric) {
  // Two leaves of two nodes each, whose uplinks carry a quarter of what comes from below: 40 / 4
  // GB/s. The storage stands behind two further leaves; 40 GB have to leave each over 10 GB/s.
  TimedProgram job = idle_writers(4);
  ClusterSpec spec = writing_cluster(4);
  spec.fabric.kind = FabricKind::clos;
  spec.fabric.nodes_per_leaf = 2;
  spec.fabric.spines = 1;
  spec.fabric.leaf_oversubscription = 4;
  job.topology = Topology(spec);
  const TimedProgram alone =
      checkpoint_write_alone(with_storage(job, 80_GBps), Bytes(80'000'000'000));
  EXPECT_NEAR(seconds_of(alone), 4, 0.01);
}

}  // namespace
}  // namespace tessera
