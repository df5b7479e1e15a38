// Which replicas can leave a job, and what the steps of the others take.
#include "sim/longrun/replica_pace.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

/// `data` replicas that take `micro_batches` of one sample each.
StepOptions job(int data, int micro_batches) {
  StepOptions step;
  step.layout.data = data;
  step.micro_batch = 1;
  step.global_batch = data * micro_batches;
  return step;
}

std::vector<int> down_to(int least, int most) {
  std::vector<int> all;
  for (int left = most; left >= least; --left) all.push_back(left);
  return all;
}

TEST(ReplicasThatLeave, AreSingleWhereEachHoldsEverything) {
  EXPECT_EQ(replicas_that_leave_together(job(8, 4), false), 1);
  EXPECT_EQ(replicas_that_leave_together(job(8, 4), true), 1);
}

TEST(ReplicasThatLeave, AreThoseThatShareExperts) {
  StepOptions step = job(64, 4);
  step.layout.expert = 8;
  EXPECT_EQ(replicas_that_leave_together(step, false), 8);
  step.layout.context = 4;  // eight ranks of two replicas share the experts
  EXPECT_EQ(replicas_that_leave_together(step, false), 2);
  step.layout.tensor = 8;
  step.layout.expert_tensor = 1;  // and those of a tensor group
  EXPECT_EQ(replicas_that_leave_together(step, false), 1);
}

TEST(ReplicasThatLeave, AreAShardGroup) {
  StepOptions step = job(64, 4);
  step.data_parallel.sharding = Sharding::parameters;
  step.data_parallel.shard_group = 16;
  EXPECT_EQ(replicas_that_leave_together(step, false), 16);
  step.layout.expert = 24;  // 24 and 16 replicas
  EXPECT_EQ(replicas_that_leave_together(step, false), 48);
}

TEST(ReplicasThatLeave, AreNoneWhereAllShareWhatOthersWouldLose) {
  StepOptions step = job(64, 4);
  step.data_parallel.sharding = Sharding::optimizer;
  // A job that begins anew reads the checkpoint and divides the states again.
  EXPECT_EQ(replicas_that_leave_together(step, false), 1);
  EXPECT_EQ(replicas_that_leave_together(step, true), 0);
  step.data_parallel.shard_group = 32;
  EXPECT_EQ(replicas_that_leave_together(step, true), 32);
}

TEST(MicroBatches, OfAKeptBatchAreSpreadAsEvenlyAsTheyCan) {
  // 128 micro-batches on seven replicas: two take 19, five take 18.
  EXPECT_EQ(micro_batches_without(job(8, 16), 7, BatchWithout::kept), 19);
  EXPECT_EQ(micro_batches_without(job(8, 16), 4, BatchWithout::kept), 32);
  EXPECT_EQ(micro_batches_without(job(8, 16), 8, BatchWithout::kept), 16);
  EXPECT_EQ(micro_batches_without(job(8, 16), 7, BatchWithout::smaller), 16);
}

TEST(MicroBatches, ComeInGroupsOfTheSchedule) {
  StepOptions step = job(8, 16);
  step.layout.pipeline = 4;
  step.schedule = PipelineSchedule::interleaved_1f1b;
  EXPECT_EQ(micro_batches_without(step, 7, BatchWithout::kept), 20);
}

TEST(PaceWithout, OfAKeptBatchFallsWithTheMicroBatchesOfTheBusiest) {
  const StepOptions step = job(4, 6);
  // 24 micro-batches: 8 on each of three replicas, 12 on two, 24 on one; a micro-batch takes 1 s,
  // the rest of the step 2 s.
  const std::vector<StepWithout> steps = {{.left = 3, .micro_batches = 8, .step = Seconds(10)},
                                          {.left = 2, .micro_batches = 12, .step = Seconds(14)}};
  EXPECT_THAT(pace_without(step, Seconds(8), steps, 1, BatchWithout::kept),
              ElementsAre(0, DoubleNear(8.0 / 26, 1e-12), DoubleNear(8.0 / 14, 1e-12),
                          DoubleNear(0.8, 1e-12), 1));
}

TEST(PaceWithout, OfASmallerBatchIsTheShareOfSamplesOverTheTimeOfAStep) {
  const StepOptions step = job(4, 6);
  const std::vector<StepWithout> steps = {{.left = 2, .micro_batches = 6, .step = Seconds(7)}};
  // Three of four replicas: 18 samples in 7.5 s in place of 24 in 8 s.
  EXPECT_THAT(pace_without(step, Seconds(8), steps, 1, BatchWithout::smaller),
              ElementsAre(0, DoubleNear(0.25 * 8 / 6.5, 1e-12), DoubleNear(0.5 * 8 / 7, 1e-12),
                          DoubleNear(0.75 * 8 / 7.5, 1e-12), 1));
}

TEST(PaceWithout, CountsGroups) {
  const StepOptions step = job(8, 2);
  const std::vector<StepWithout> steps = {{.left = 4, .micro_batches = 4, .step = Seconds(20)}};
  EXPECT_THAT(pace_without(step, Seconds(10), steps, 4, BatchWithout::kept),
              ElementsAre(0, 0.5, 1));
}

TEST(ReplicasToSimulate, AreAtMostFourAndReachTheFewest) {
  const auto kept = replicas_to_simulate(job(128, 32), down_to(100, 127), BatchWithout::kept);
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept.front(), 127);
  // 41 micro-batches: 4096 / 100 rounded up; of the replicas with as many, the most.
  EXPECT_EQ(micro_batches_without(job(128, 32), kept.back(), BatchWithout::kept), 41);
  EXPECT_THAT(replicas_to_simulate(job(64, 4), {56, 48}, BatchWithout::smaller),
              ElementsAre(56, 48));
  EXPECT_TRUE(replicas_to_simulate(job(4, 2), {}, BatchWithout::kept).empty());
}

TEST(ReplicasToSimulate, BeyondEightTimesTheMicroBatchesStepsFollowInProportion) {
  for (const int left : replicas_to_simulate(job(64, 2), down_to(1, 63), BatchWithout::kept))
    EXPECT_LE(micro_batches_without(job(64, 2), left, BatchWithout::kept), 16);
}

}  // namespace
}  // namespace tessera
