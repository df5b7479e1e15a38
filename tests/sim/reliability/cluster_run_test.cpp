#include "sim/reliability/cluster_run.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/reliability/random_stream.h"

namespace tessera {
namespace {

constexpr Micros seconds(std::int64_t s) {
  return Micros(s * 1'000'000);
}

/// Two nodes that train 100 s, write 10 s and restart in 20 s, for 400 s.
RunPlan small_plan() {
  RunPlan plan;
  plan.nodes = 2;
  plan.length = seconds(400);
  plan.interval = seconds(100);
  plan.checkpoint = seconds(10);
  plan.restart = seconds(20);
  return plan;
}

RecordedFault fault(std::int64_t begin, std::int64_t end) {
  return {.node = 0, .cause = "fault", .begin = seconds(begin), .end = seconds(end)};
}

TEST(ClusterRun, WithoutFailuresOnlyCheckpointsCost) {
  const RunRecord record = simulate_run(small_plan(), 1);
  // 0-100, 110-210, 220-320, 330-400.
  EXPECT_EQ(record.useful, seconds(370));
  EXPECT_EQ(record.checkpoint, seconds(30));
  EXPECT_EQ(record.checkpoints, 3);
  EXPECT_EQ(record.stops, 0);
  EXPECT_EQ(record.wall, seconds(400));
}

TEST(ClusterRun, AFaultTakesWorkBackAndTheJobWaitsForItsNode) {
  RunPlan plan = small_plan();
  plan.recorded = {fault(150, 200)};
  const RunRecord record = simulate_run(plan, 1);
  // 0-100 trains, -110 writes, -150 is lost, -200 waits, -220 restarts, -320 trains, -330 writes.
  EXPECT_EQ(record.useful, seconds(100 + 100 + 70));
  EXPECT_EQ(record.lost, seconds(40));
  EXPECT_EQ(record.waiting, seconds(50));
  EXPECT_EQ(record.restart, seconds(20));
  EXPECT_EQ(record.checkpoint, seconds(20));
  ASSERT_EQ(record.causes.size(), 1U);
  EXPECT_EQ(record.causes[0].total(), seconds(40 + 50 + 20));
  // One of two nodes for 50 of 400 s.
  EXPECT_EQ(record.node_time_out, seconds(50));
  EXPECT_DOUBLE_EQ(record.node_availability, 1 - 50.0 / 800);
}

TEST(ClusterRun, ASpareTakesThePlaceOfAFailedNode) {
  RunPlan plan = small_plan();
  plan.spares = 1;
  plan.recorded = {fault(150, 200)};
  const RunRecord record = simulate_run(plan, 1);
  // -150 lost, -170 restarts, -270 trains, -280 writes, -380 trains, -390 writes.
  EXPECT_EQ(record.useful, seconds(100 + 100 + 100 + 10));
  EXPECT_EQ(record.waiting, seconds(0));
  EXPECT_EQ(record.restart, seconds(20));
}

TEST(ClusterRun, AnElasticJobGoesOnWithFewerReplicasAndGrowsBehindACheckpoint) {
  RunPlan plan = small_plan();
  plan.elastic = true;
  plan.replicas = 2;
  plan.recorded = {fault(150, 200)};
  const RunRecord record = simulate_run(plan, 1);
  // -150 lost, -170 restarts, -270 trains at half speed, -280 writes, -300 restarts, then full
  // speed.
  EXPECT_EQ(record.useful, seconds(100 + 50 + 100));
  EXPECT_EQ(record.slow, seconds(50));
  EXPECT_EQ(record.restart, seconds(40));
  EXPECT_EQ(record.causes[0].slow, seconds(50));
  plan.least_replicas = 2;
  EXPECT_EQ(simulate_run(plan, 1).waiting, seconds(50));
}

TEST(ClusterRun, ACheckpointThatIsStillBeingWrittenIsLost) {
  RunPlan plan = small_plan();
  plan.spares = 1;
  plan.write = seconds(60);  // from 110 to 170
  plan.recorded = {fault(150, 160)};
  EXPECT_EQ(simulate_run(plan, 1).lost, seconds(140));
  plan.recorded = {fault(180, 190)};
  EXPECT_EQ(simulate_run(plan, 1).lost, seconds(70));
}

TEST(ClusterRun, ACopyInMemorySurvivesTheLossOfOneNode) {
  RunPlan plan = small_plan();
  plan.spares = 1;
  plan.memory_interval = seconds(20);
  plan.memory_checkpoint = seconds(1);
  plan.recorded = {fault(90, 95)};
  // Copies at 20, 41, 62 and 83 s, each of 1 s; what came behind the last is lost.
  EXPECT_EQ(simulate_run(plan, 1).lost, seconds(90 - 84));
}

TEST(ClusterRun, OverlappingFaultsOfANodeCountOnce) {
  RunPlan plan = small_plan();
  plan.recorded = {fault(100, 200), fault(150, 180), fault(190, 250)};
  const RunRecord record = simulate_run(plan, 1);
  EXPECT_EQ(record.node_time_out, seconds(150));
  EXPECT_EQ(record.stops, 1);
}

TEST(ClusterRun, EndsWhenTheWorkIsDone) {
  RunPlan plan = small_plan();
  plan.work = seconds(250);
  const RunRecord record = simulate_run(plan, 1);
  EXPECT_TRUE(record.work_done);
  EXPECT_EQ(record.useful, seconds(250));
  EXPECT_EQ(record.wall, seconds(270));  // two checkpoints
  plan.work = seconds(1000);
  EXPECT_FALSE(simulate_run(plan, 1).work_done);
}

TEST(ClusterRun, APlannedStopLosesNoWork) {
  RunPlan plan = small_plan();
  plan.length = days_of(30);
  plan.failures.classes = {
      {.name = "update", .component = Component::software, .per_node_day = 5, .announced = true}};
  const RunRecord record = simulate_run(plan, 7);
  EXPECT_GT(record.stops, 200);
  // Only those lose anything that come while the job restarts, which has trained nothing.
  EXPECT_EQ(record.lost, Micros(0));
  EXPECT_EQ(record.accounted(), record.wall);
}

TEST(ClusterRun, WhileTheJobWaitsNothingIsSpoilt) {
  RunPlan plan = small_plan();
  plan.failures.classes = {{.name = "bits", .per_node_day = 2000, .found_after = Seconds(10)}};
  plan.recorded = {fault(1000, 10'000'000)};
  plan.length = seconds(1020);
  const RunRecord before = simulate_run(plan, 3);
  EXPECT_GT(before.stops, 5);
  plan.length = seconds(100'000);
  const RunRecord after = simulate_run(plan, 3);
  EXPECT_EQ(after.stops, before.stops);
  EXPECT_EQ(after.waiting, seconds(99'000));
}

TEST(ClusterRun, RefusesPlansThatNoRunCanFollow) {
  RunPlan plan = small_plan();
  EXPECT_NO_THROW(check_plan(plan));
  plan.recorded = {fault(1, 2)};
  plan.recorded[0].node = 2;
  EXPECT_THROW(check_plan(plan), InputError);
  plan = small_plan();
  plan.interval = Micros(0);
  EXPECT_THROW(check_plan(plan), InputError);
  plan = small_plan();
  plan.least_replicas = 2;
  EXPECT_THROW(check_plan(plan), InputError);
}

FailureClass random_failures(RandomStream& random, std::int64_t number) {
  const auto up_to = [&](std::int64_t most) { return random.below(most + 1); };
  FailureClass of{.name = "cause " + std::to_string(number)};
  of.per_node_day = random.uniform() * 0.5;
  of.shape = up_to(1) == 0 ? 1 : 0.5 + random.uniform();
  of.repair = Seconds(static_cast<double>(up_to(1) * up_to(200'000)));
  of.detection = Seconds(1 + random.uniform() * static_cast<double>(up_to(1'000)));
  const std::int64_t kind = up_to(4);
  if (kind == 1) of.takes_nodes = 1 + static_cast<int>(up_to(7));
  if (kind == 2) of.slowdown = 1 + random.uniform();
  of.stays = up_to(1) == 1;
  of.announced = kind == 3;
  if (kind == 4) of.found_after = Seconds(static_cast<double>(up_to(100'000)));
  if (up_to(1) == 1) of.restart = Seconds(random.uniform() * 100);
  return of;
}

/// A plan of any shape, with several kinds of failures.
RunPlan random_plan(RandomStream& random) {
  const auto up_to = [&](std::int64_t most) { return random.below(most + 1); };
  RunPlan plan;
  plan.nodes = 1 + static_cast<int>(up_to(40));
  plan.spares = static_cast<int>(up_to(4));
  plan.repair_crews = static_cast<int>(up_to(3));
  plan.length = Micros(1 + up_to(days_of(20).value()));
  plan.interval = Micros(1'000'000 + up_to(10'000'000'000));
  plan.checkpoint = Micros(up_to(1) * up_to(100'000'000));
  plan.write = Micros(up_to(1) * up_to(1'000'000'000));
  plan.memory_interval = Micros(up_to(1) * (1'000'000 + up_to(1'000'000'000)));
  plan.memory_checkpoint = Micros(up_to(1'000'000));
  plan.restart = Micros(up_to(1) * up_to(2'000'000'000));
  plan.elastic = up_to(1) == 1;
  plan.replicas = 1 + static_cast<int>(up_to(60));
  plan.least_replicas = 1 + static_cast<int>(up_to(plan.replicas - 1));
  if (up_to(1) == 1) {
    for (int left = 0; left <= plan.replicas; ++left)
      plan.pace_of_replicas.push_back(left == plan.replicas ? 1 : 0.1 + 0.9 * random.uniform());
  }
  plan.recorded_detection = Micros(up_to(1) * up_to(1'000'000'000));
  if (up_to(3) == 0) plan.work = Micros(1 + up_to(days_of(20).value()));
  for (std::int64_t i = up_to(4); i > 0; --i)
    plan.failures.classes.push_back(random_failures(random, i));
  for (std::int64_t i = up_to(1) * up_to(20), begin = 0; i > 0; --i) {
    begin += up_to(days_of(1).value());
    plan.recorded.push_back({.node = static_cast<int>(up_to(plan.nodes - 1)),
                             .cause = i % 2 == 0 ? "even" : "odd",
                             .begin = Micros(begin),
                             .end = Micros(begin + 1 + up_to(days_of(2).value()))});
  }
  return plan;
}

Micros sum_of(const std::vector<CauseLoss>& causes, Micros CauseLoss::*part) {
  Micros sum;
  for (const CauseLoss& of : causes) sum += of.*part;
  return sum;
}

/// A timeline has no gap, and tells the same story as the sums.
void expect_same_story(const RunRecord& record) {
  std::array<Micros, kActivityCount> time;
  Micros end;
  for (const ActivitySpan& span : record.timeline) {
    EXPECT_EQ(span.begin, end);
    end = span.end;
    time[static_cast<std::size_t>(span.activity)] += span.end - span.begin;
  }
  const auto of = [&](Activity activity) { return time[static_cast<std::size_t>(activity)]; };
  EXPECT_EQ(end, record.wall);
  EXPECT_EQ(of(Activity::training) + of(Activity::lost), record.useful + record.slow + record.lost);
  EXPECT_GE(of(Activity::lost), record.lost);
  EXPECT_EQ(of(Activity::checkpoint), record.checkpoint);
  EXPECT_EQ(of(Activity::detection), record.detection);
  EXPECT_EQ(of(Activity::restart), record.restart);
  EXPECT_EQ(of(Activity::waiting), record.waiting);
}

TEST(ClusterRun, EveryMicrosecondIsAccountedForOnce) {
  RandomStream random(2026, 0);
  std::int64_t stops = 0, elastic = 0;
  for (int i = 0; i < 500; ++i) {
    const RunPlan plan = random_plan(random);
    SCOPED_TRACE(i);
    const RunRecord record = simulate_run(plan, static_cast<std::uint64_t>(i), true);
    EXPECT_EQ(record.accounted(), record.wall);
    EXPECT_LE(record.wall, plan.length);
    EXPECT_EQ(record.wall < plan.length, record.work_done);
    for (const Micros part : {record.useful, record.slow, record.lost, record.checkpoint,
                              record.detection, record.restart, record.waiting})
      EXPECT_GE(part, Micros(0));
    EXPECT_EQ(sum_of(record.causes, &CauseLoss::lost), record.lost);
    EXPECT_EQ(sum_of(record.causes, &CauseLoss::slow), record.slow);
    EXPECT_EQ(sum_of(record.causes, &CauseLoss::detection), record.detection);
    EXPECT_EQ(sum_of(record.causes, &CauseLoss::restart), record.restart);
    EXPECT_EQ(sum_of(record.causes, &CauseLoss::waiting), record.waiting);
    EXPECT_GE(record.node_availability, 0);
    EXPECT_LE(record.node_availability, 1);
    expect_same_story(record);
    stops += record.stops;
    elastic += record.slow.value() > 0 ? 1 : 0;
  }
  EXPECT_GT(stops, 5000);
  EXPECT_GT(elastic, 50);
}

TEST(ClusterRun, SkippedCyclesMakeTheSameRecord) {
  RandomStream random(7, 0);
  for (int i = 0; i < 300; ++i) {
    const RunPlan plan = random_plan(random);
    SCOPED_TRACE(i);
    // With a timeline nothing is skipped.
    const RunRecord a = simulate_run(plan, 3), b = simulate_run(plan, 3, true);
    for (const auto part :
         {&RunRecord::wall, &RunRecord::useful, &RunRecord::slow, &RunRecord::lost,
          &RunRecord::checkpoint, &RunRecord::detection, &RunRecord::restart, &RunRecord::waiting})
      EXPECT_EQ(a.*part, b.*part);
    EXPECT_EQ(a.stops, b.stops);
    EXPECT_EQ(a.checkpoints, b.checkpoints);
  }
}

}  // namespace
}  // namespace tessera
