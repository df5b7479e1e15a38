// What a job does about failures, second by second, and what checkpoints of several kinds save.
#include <cstdint>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/reliability/cluster_run.h"
#include "sim/reliability/replica_set.h"

namespace tessera {
namespace {

constexpr Micros of_seconds(std::int64_t s) {
  return Micros(s * 1'000'000);
}

/// Two nodes, a replica on each, that train 100 s, write 10 s and restart in 20 s, for 400 s.
RunPlan two_replicas() {
  RunPlan plan;
  plan.nodes = 2;
  plan.replicas = 2;
  plan.length = of_seconds(400);
  plan.interval = of_seconds(100);
  plan.checkpoint = of_seconds(10);
  plan.restart = of_seconds(20);
  return plan;
}

RecordedFault out(int node, std::int64_t begin, std::int64_t end) {
  return {.node = node, .cause = "fault", .begin = of_seconds(begin), .end = of_seconds(end)};
}

TEST(ReplicaWise, TheOtherReplicaTrainsOnAndNothingIsLost) {
  RunPlan plan = two_replicas();
  plan.replica_wise = true;
  plan.recorded = {out(0, 150, 200)};
  const RunRecord record = simulate_run(plan, 1);
  // 0-100 trains, -110 writes, -150 both train, -210 one of two, -220 writes; the node is back at
  // 200 and its replica at 220; -320 both, -330 writes, -400 both.
  EXPECT_EQ(record.useful, of_seconds(100 + 40 + 30 + 100 + 70));
  EXPECT_EQ(record.slow, of_seconds(30));
  EXPECT_EQ(record.lost, Micros(0));
  EXPECT_EQ(record.checkpoint, of_seconds(30));
  EXPECT_EQ(record.stops, 0);
  EXPECT_EQ(record.drops, 1);
  EXPECT_EQ(record.causes[0].slow, of_seconds(30));
  EXPECT_EQ(record.accounted(), record.wall);
}

TEST(ReplicaWise, ASpareBringsTheReplicaBackAfterOneRestart) {
  RunPlan plan = two_replicas();
  plan.replica_wise = true;
  plan.spares = 1;
  plan.recorded = {out(0, 150, 390)};
  const RunRecord record = simulate_run(plan, 1);
  // One of two from 150 to 170 instead of a stop of 20 s and 40 s of work.
  EXPECT_EQ(record.slow, of_seconds(10));
  EXPECT_EQ(record.lost + record.restart + record.waiting, Micros(0));
}

TEST(ReplicaWise, StopsWhereTooFewReplicasAreLeft) {
  RunPlan plan = two_replicas();
  plan.replica_wise = true;
  plan.least_replicas = 2;
  plan.recorded = {out(0, 150, 200)};
  const RunRecord record = simulate_run(plan, 1);
  EXPECT_EQ(record.stops, 1);
  EXPECT_EQ(record.lost, of_seconds(40));
  EXPECT_EQ(record.waiting, of_seconds(50));
}

TEST(ReplicaWise, IsNoPolicyBesideAnother) {
  RunPlan plan = two_replicas();
  plan.replica_wise = plan.elastic = true;
  EXPECT_THROW(check_plan(plan), InputError);
}

TEST(Elastic, FewerReplicasTrainAtTheirPaceAndTheTimeIsCounted) {
  RunPlan plan = two_replicas();
  plan.elastic = true;
  plan.pace_of_replicas = {0, 0.4, 1};
  plan.recorded = {out(0, 150, 390)};
  const RunRecord record = simulate_run(plan, 1);
  // 0-100 trains, -110 writes, -150 is lost, -170 restarts, -270 one of two, -280 writes, -380 one
  // of two, -390 writes, -400 one of two: at 0.4 of the pace, whatever their share.
  EXPECT_EQ(record.useful, of_seconds(100 + 40 + 40 + 4));
  EXPECT_EQ(record.slow, of_seconds(60 + 60 + 6));
  EXPECT_EQ(record.fewer, of_seconds(210));
  EXPECT_EQ(record.least_replicas, 1);
  EXPECT_EQ(record.accounted(), record.wall);
}

TEST(Elastic, NoReplicaIsMissingWithoutFailures) {
  RunPlan plan = two_replicas();
  plan.elastic = true;
  EXPECT_EQ(simulate_run(plan, 1).fewer, Micros(0));
  EXPECT_EQ(simulate_run(plan, 1).least_replicas, 2);
}

TEST(Elastic, EveryNumberOfReplicasNeedsAPace) {
  RunPlan plan = two_replicas();
  plan.pace_of_replicas = {0, 1};
  EXPECT_THROW(check_plan(plan), InputError);
  plan.pace_of_replicas = {0, 0.5, 0.9};  // all of them train at full pace
  EXPECT_THROW(check_plan(plan), InputError);
}

TEST(Detection, OfARecordedFaultPassesBeforeTheJobStops) {
  RunPlan plan = two_replicas();
  plan.recorded = {out(0, 150, 200)};
  plan.recorded_detection = of_seconds(30);
  const RunRecord record = simulate_run(plan, 1);
  // -150 lost, -180 nobody knows, -200 waits, -220 restarts.
  EXPECT_EQ(record.detection, of_seconds(30));
  EXPECT_EQ(record.waiting, of_seconds(20));
}

/// Nodes that are 1.5 times slower for 60 s until they are found, and out for 300 s.
RunPlan stragglers() {
  RunPlan plan = two_replicas();
  plan.length = days_of(20);
  plan.spares = 2;
  plan.failures.classes = {{.name = "slow", .component = Component::gpu, .per_node_day = 2}};
  plan.failures.classes[0].slowdown = 1.5;
  plan.failures.classes[0].detection = Seconds(60);
  plan.failures.classes[0].repair = Seconds(300);
  return plan;
}

TEST(Stragglers, EvictedOnesStopTheJobAndKeptOnesSlowItUntilItStops) {
  RunPlan plan = stragglers();
  const RunRecord evicted = simulate_run(plan, 1);
  ASSERT_GT(evicted.stops, 60);  // 2 nodes x 2 a day x 20 days
  plan.failures.classes[0].stays = true;
  const RunRecord kept = simulate_run(plan, 1);
  EXPECT_EQ(kept.stops, 0);
  EXPECT_EQ(kept.restart + kept.lost, Micros(0));
  EXPECT_EQ(kept.accounted(), kept.wall);
  // From the first slow node on a third of the training is missing: of nearly all of the 20 days.
  EXPECT_GT(kept.slow / (kept.slow + kept.useful), 0.3);
  EXPECT_LT(evicted.slow / (evicted.slow + evicted.useful), 0.001);
}

TEST(Stragglers, KeptOnesLeaveWithTheNextStop) {
  RunPlan plan = stragglers();
  plan.failures.classes[0].stays = true;
  plan.failures.classes.push_back({.name = "crash", .component = Component::software});
  plan.failures.classes[1].per_node_day = 12;  // of two nodes: every hour
  const RunRecord record = simulate_run(plan, 1);
  EXPECT_GT(record.node_time_out, of_seconds(300) * 30);
  // Half of the events meet a spare; the others slow the job for an hour, a third of which is
  // missing.
  const double slow_h = static_cast<double>(record.causes[0].events) / 2 / 3;
  EXPECT_NEAR(in_hours(record.slow) / slow_h, 1, 0.25);
  EXPECT_EQ(plan.failures.stops_per_day(2), 24);
}

TEST(ReplicaSet, NeighboursBelongToAsFewReplicasAsTheyFill) {
  ReplicaSet replicas(4, 8);  // two nodes each
  EXPECT_TRUE(replicas.drop(2, 1));
  EXPECT_EQ(replicas.training(), 3);
  EXPECT_TRUE(replicas.drop(3, 1));
  EXPECT_EQ(replicas.training(), 1);
  EXPECT_FALSE(replicas.drop(1, 1));
  replicas.join(7, Micros(5));  // three whole replicas, of which one trains
  replicas.take_back();
  replicas.take_back();
  EXPECT_EQ(replicas.training(), 3);
  EXPECT_EQ(replicas.next_joining(), kLongestTime);
}

TEST(Checkpoints, AWriteBesideTrainingSlowsIt) {
  RunPlan plan = two_replicas();
  plan.write = of_seconds(50);
  plan.write_slowdown = 1.25;
  const RunRecord record = simulate_run(plan, 1);
  // Checkpoints end at 110, 220 and 330; of the 50 s behind each 40 are useful.
  EXPECT_EQ(record.useful, of_seconds(100 + 90 + 90 + 60));
  EXPECT_EQ(record.slow, of_seconds(30));
  EXPECT_EQ(record.beside_writes, of_seconds(30));
  EXPECT_EQ(record.checkpoint, of_seconds(30));
}

TEST(Checkpoints, OneOfThreeIsWhole) {
  RunPlan plan = two_replicas();
  plan.full_every = 3;
  plan.increment = of_seconds(4);
  const RunRecord record = simulate_run(plan, 1);
  // 0-100, whole to 110, 110-210, -214, 214-314, -318, 318-400
  EXPECT_EQ(record.checkpoint, of_seconds(10 + 4 + 4));
  EXPECT_EQ(record.useful, of_seconds(382));
}

TEST(Checkpoints, EveryIncrementSinceTheWholeOneIsReadAgain) {
  RunPlan plan = two_replicas();
  plan.full_every = 3;
  plan.increment = of_seconds(4);
  plan.increment_restart = of_seconds(3);
  plan.recorded = {out(0, 320, 320)};
  // Behind a whole one and two increments.
  EXPECT_EQ(simulate_run(plan, 1).restart, of_seconds(20 + 2 * 3));
}

TEST(Checkpoints, CopiesOnDrivesOutliveTheJobButNotTheirNode) {
  RunPlan plan = two_replicas();
  plan.length = days_of(2);
  plan.interval = of_seconds(3000);
  plan.local_interval = of_seconds(30);
  plan.local_checkpoint = of_seconds(2);
  plan.failures.classes = {{.name = "crash", .component = Component::software, .per_node_day = 20}};
  const RunRecord crashes = simulate_run(plan, 1);
  ASSERT_GT(crashes.stops, 30);
  EXPECT_LE(crashes.lost, of_seconds(30) * crashes.stops);
  plan.failures.classes[0].repair = Seconds(60);
  const RunRecord broken = simulate_run(plan, 1);
  ASSERT_GT(broken.stops, 30);
  EXPECT_GT(broken.lost, of_seconds(100) * broken.stops);
  EXPECT_EQ(broken.accounted(), broken.wall);
}

TEST(Spot, AnnouncedInterruptionsTakeTheNodeAndNoWork) {
  RunPlan plan = two_replicas();
  plan.length = days_of(2);
  plan.failures.classes = {{.name = "spot", .component = Component::host, .per_node_day = 20}};
  plan.failures.classes[0].repair = Seconds(300);
  plan.failures.classes[0].announced = true;
  const RunRecord record = simulate_run(plan, 1);
  ASSERT_GT(record.stops, 30);
  // But for a second node that goes while the checkpoint of the first is written.
  EXPECT_LT(record.lost, of_seconds(1) * record.stops);
  EXPECT_GT(record.waiting, of_seconds(200) * record.stops);
}

}  // namespace
}  // namespace tessera
