// The write of a checkpoint, simulated over the links of its cluster.
#include <gtest/gtest.h>

#include "sim/longrun/checkpoint_writes.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"
#include "tests/sim/longrun/writing_job.h"

namespace tessera {
namespace {

using test::idle_writers;
using test::writing_cluster;

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
