#include "sim/engine/host_process.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tessera::test
