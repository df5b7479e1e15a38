#include "sim/engine/device/host_process.h"

#include <gtest/gtest.h>

#include "sim/trace/timeline_index.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

SegmentCosts host_cost(Seconds host_time) {
  SegmentCosts costs;
  costs.host_time = host_time;
  return costs;
}

TEST(HostProcess, ALaunchBoundStepTakesTheTimeOfItsHost) {
  // Kernels of 2 us behind launches of 10 us: 100 * 10 us, and the last kernel.
  ProgramBuilder builder;
  for (int i = 0; i < 100; ++i) builder.kernels(0, 2_us, kNoWaits, host_cost(10_us));
  EXPECT_NEAR(simulate_forked(builder.build()).step_time.value(), 1e-3 + 2e-6, 1e-12);
}

TEST(HostProcess, AGpuBoundStepHidesItsHostExceptForTheFirstLaunch) {
  ProgramBuilder builder;
  for (int i = 0; i < 100; ++i) builder.kernels(0, 10_us, kNoWaits, host_cost(2_us));
  EXPECT_NEAR(simulate_forked(builder.build()).step_time.value(), 2e-6 + 1e-3, 1e-12);
}

TEST(HostProcess, AWaitOfTheHostExposesTheNextLaunch) {
  SegmentCosts costs = host_cost(2_us);
  costs.host_sync = true;
  ProgramBuilder builder;
  for (int i = 0; i < 100; ++i) builder.kernels(0, 10_us, kNoWaits, costs);
  EXPECT_NEAR(simulate_forked(builder.build()).step_time.value(), 100 * 12e-6, 1e-12);
}

TEST(HostProcess, AWaitForACommunicationHoldsLaterLaunchesOnAllStreams) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.kernels(0, 10_ms);
  builder.send(0, 1, 0, Bytes(0), {0, -1});
  builder.recv(1, 0, 0, Bytes(0));
  builder.last(1).host_sync = true;
  builder.kernels(1, 1_ms);  // on a stream of its own, but launched after the wait
  const Timeline timeline = simulate_forked(builder.build());
  EXPECT_EQ(timeline.ops[3].start, timeline.ops[2].end);
  EXPECT_GE(timeline.ops[3].start, 10_ms);
}

TEST(HostProcess, EachCommunicationCostsItsLaunch) {
  ProgramBuilder builder;
  for (int i = 0; i < 10; ++i) {
    builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm);
  }
  TimedProgram program = builder.build();
  program.communication_host_time = 5_us;
  EXPECT_NEAR(simulate_forked(program).step_time.value(), 10 * 5e-6, 1e-12);
}

/// Three launches of 10 us; the host waits for the second op.
TimedProgram program_with_a_wait() {
  ProgramBuilder builder;
  builder.kernels(0, 2_us, kNoWaits, host_cost(10_us));
  SegmentCosts awaited = host_cost(10_us);
  awaited.host_sync = true;
  builder.kernels(0, 5_us, kNoWaits, awaited);
  builder.kernels(0, 2_us, kNoWaits, host_cost(10_us));
  return builder.build();
}

TEST(LaunchDates, GoOnFromTheEndOfWhatTheHostWaitedFor) {
  const TimedProgram program = program_with_a_wait();
  const Timeline timeline = simulate_forked(program);
  const std::vector<Seconds> dates = TimelineIndex(program, timeline).launch_dates_of(0);
  ASSERT_EQ(dates.size(), 3);
  for (const std::size_t op : {0U, 1U, 2U}) EXPECT_EQ(dates[op], timeline.ops[op].start) << op;
  EXPECT_EQ(dates[2], timeline.ops[1].end + 10_us);
}

TEST(LaunchDates, FollowFromTheRunOfLaunchesThatTheOpBelongsTo) {
  const TimedProgram program = program_with_a_wait();
  const StageLaunches launches = launches_of(program, program.program.stages[0]);
  const LaunchRun first = launch_run(-1, Seconds(), 1, launches);
  EXPECT_GE(first.done, 20_us);
  EXPECT_NEAR(first.done.value(), 20e-6, 1e-12);
  LaunchDates dates;
  EXPECT_EQ(dates.of(0, first, launches), 10_us);
  const LaunchRun second = launch_run(1, 25_us, 2, launches);
  EXPECT_GE(second.done, 35_us);
  EXPECT_LE(dates.of(1, second, launches), 25_us) << "launched before the host waited for it";
  EXPECT_EQ(dates.of(2, second, launches), 25_us + 10_us);
}

}  // namespace
}  // namespace tessera::test
