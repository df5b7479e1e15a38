#include "sim/engine/engine.h"

#include <numeric>

#include <gtest/gtest.h>

#include "sim/collectives/collective.h"
#include "sim/collectives/collective_constants.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr StreamKind kCompute = StreamKind::compute;
constexpr StreamKind kDataComm = StreamKind::data_comm;

double solo_all_reduce(const TimedProgram& program, Bytes bytes) {
  std::vector<int> ranks(static_cast<std::size_t>(program.topology.gpu_count()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return collective_cost(program.topology, CollectiveKind::all_reduce, bytes, ranks)
      .solo_time.value();
}

TEST(Engine, OneGpuTakesExactlyTheSumOfItsKernels) {
  ProgramBuilder builder;
  Seconds sum;
  for (int i = 1; i <= 500; ++i) {
    const Seconds duration(0.1e-6 * i);  // not a binary fraction
    builder.kernels(0, duration);
    sum += duration;
  }
  EXPECT_EQ(simulate_forked(builder.build()).step_time, sum);
}

TEST(Engine, StepsInWhichNoLinkIsFullRunOneBehindTheOtherInAProcess) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 4});
  const auto first = builder.kernels(0, 10_ms);
  builder.all_reduce(0, GroupKind::data, 100_MiB, kDataComm, {first, -1});
  builder.kernels(0, 10_ms);
  const TimedProgram program = builder.build();
  const std::string once = packed(simulate(program));
  EXPECT_EQ(packed(simulate(program)), once);
  EXPECT_EQ(packed(simulate_forked(program)), once);
  EXPECT_FALSE(simgrid_was_needed());
}

TEST(Engine, AStepWithoutOpsTakesNoTime) {
  EXPECT_EQ(simulate_forked(ProgramBuilder().build()).step_time, 0_s);
}

TEST(Engine, RecordsAreInTheOrderOfRankAndOp) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 2});
  builder.kernels(0, 1_us);
  builder.kernels(0, 2_us);
  builder.kernels(1, 3_us);
  builder.kernels(1, 4_us);
  const Timeline timeline = simulate_forked(builder.build());
  ASSERT_EQ(timeline.ops.size(), 8);
  for (int i = 0; i < 8; ++i) {
    const OpRecord& record = timeline.ops[static_cast<std::size_t>(i)];
    EXPECT_EQ(record.op, i % 2);
    const int stage = i / 4;
    EXPECT_NEAR((record.end - record.start).value(), (2 * stage + 1 + record.op) * 1e-6, 1e-15);
  }
}

TEST(Engine, AnAllReduceOnItsOwnStreamRunsBesideCompute) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 4});
  const auto first = builder.kernels(0, 10_ms);
  builder.all_reduce(0, GroupKind::data, 100_MiB, kDataComm, {first, -1});
  builder.kernels(0, 10_ms);
  const TimedProgram program = builder.build();
  const Timeline timeline = simulate_forked(program);
  EXPECT_NEAR(timeline.ops[1].start.value(), 0.010, kPicosecond);
  EXPECT_NEAR(timeline.ops[1].end.value(), 0.010 + solo_all_reduce(program, 100_MiB), kPicosecond);
  EXPECT_NEAR(timeline.step_time.value(), 0.020, kPicosecond);
}

TEST(Engine, AnAllReduceOnTheComputeStreamDelaysTheNextKernel) {
  ProgramBuilder builder({.tensor = 4, .pipeline = 1, .data = 1});
  builder.kernels(0, 10_ms);
  builder.all_reduce(0, GroupKind::tensor, 100_MiB, kCompute);
  builder.kernels(0, 10_ms);
  const TimedProgram program = builder.build();
  EXPECT_NEAR(simulate_forked(program).step_time.value(), 0.020 + solo_all_reduce(program, 100_MiB),
              kPicosecond);
}

TEST(Engine, ARingAllReduceTakesItsBytesOverTheRateAndTheLatency) {
  // 2(n-1)/n * S / B with n = 4, S = 1 GB, B = 100 GB/s: 15 ms for 6 steps, of which the last is
  // followed by a part of a step that sends nothing
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 4});
  builder.all_reduce(0, GroupKind::data, Bytes(1'000'000'000), kDataComm);
  const TimedProgram program = builder.build();
  const std::vector<int> ranks = {0, 1, 2, 3};
  const Seconds alpha =
      collective_cost(program.topology, CollectiveKind::all_reduce, Bytes(1'000'000'000), ranks)
          .latency;
  const double steps = 6 + CollectiveConstants().extra_simple;
  const double formula = 0.015 * steps / 6 + alpha.value();
  EXPECT_NEAR(simulate_forked(program).step_time.value(), formula, 1e-3 * formula);
}

TEST(Engine, AllMembersEndACollectiveTogetherAfterTheLastHasJoined) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.kernels(0, 3_ms);
  builder.kernels(1, 7_ms);
  for (int stage : {0, 1}) builder.all_reduce(stage, GroupKind::world, 1_MiB, kCompute);
  const TimedProgram program = builder.build();
  const Timeline timeline = simulate_forked(program);
  EXPECT_EQ(timeline.ops[1].start, 3_ms);
  EXPECT_EQ(timeline.ops[3].start, 7_ms);
  EXPECT_EQ(timeline.ops[1].transfer_start, 7_ms);
  EXPECT_EQ(timeline.ops[3].transfer_start, 7_ms);
  EXPECT_EQ(timeline.ops[1].end, timeline.ops[3].end);
  EXPECT_NEAR(timeline.step_time.value(), 0.007 + solo_all_reduce(program, 1_MiB), kPicosecond);
}

TEST(Engine, ACollectiveOfOneRankCostsNothing) {
  ProgramBuilder builder;
  builder.kernels(0, 1_ms);
  builder.all_reduce(0, GroupKind::tensor, 100_MiB, kCompute);
  EXPECT_EQ(simulate_forked(builder.build()).step_time, 1_ms);
}

TEST(Engine, AMessageTakesTheLatencyOfItsRouteAndItsBytesOverTheRate) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.send(0, 1, 0, Bytes(10'000'000));
  builder.recv(1, 0, 0, Bytes(10'000'000));
  const TimedProgram program = builder.build();
  const double latency = program.topology.route(0, 1).latency.value();
  EXPECT_NEAR(simulate_forked(program).step_time.value(), latency + 10e6 / 100e9, kPicosecond);
}

TEST(Engine, ASendDoesNotWaitForItsReceiver) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.send(0, 1, 0, Bytes(10'000'000));
  const auto late = builder.kernels(1, 50_ms);
  builder.recv(1, 0, 0, Bytes(10'000'000), {late, -1});
  const Timeline timeline = simulate_forked(builder.build());
  EXPECT_LT(timeline.ops[0].end, 1_ms);
  EXPECT_EQ(timeline.ops[2].start, 50_ms);
  EXPECT_EQ(timeline.ops[2].end, 50_ms);
}

TEST(Engine, MessagesThatArriveOutOfOrderGoToTheRecvWithTheirTag) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.send(0, 1, 7, Bytes(0));
  const auto slow = builder.kernels(0, 20_ms);
  builder.send(0, 1, 8, Bytes(0), {slow, -1});
  builder.recv(1, 0, 8, Bytes(0));
  builder.recv(1, 0, 7, Bytes(0));
  const Timeline timeline = simulate_forked(builder.build());
  EXPECT_GE(timeline.ops[3].end, 20_ms);  // tag 8
  EXPECT_GE(timeline.ops[4].end, timeline.ops[3].end);
}

TEST(Engine, TwoTransfersOnALinkShareIt) {
  // Both messages leave through GPU 0's port; each gets half of 100 GB/s: 2 * 10 MB / 100 GB/s.
  ProgramBuilder builder({.tensor = 1, .pipeline = 3, .data = 1});
  builder.send(0, 1, 0, Bytes(10'000'000));
  builder.send(0, 2, 0, Bytes(10'000'000));
  builder.last(0).stream = StreamKind::data_comm;
  builder.recv(1, 0, 0, Bytes(10'000'000));
  builder.recv(2, 0, 0, Bytes(10'000'000));
  const TimedProgram program = builder.build();
  const double latency = program.topology.route(0, 1).latency.value();
  EXPECT_NEAR(simulate_forked(program).step_time.value(), latency + 2 * 10e6 / 100e9, kPicosecond);
}

TEST(Engine, TheClosedFormOfPrivateLinksEqualsTheFlow) {
  const auto step = [](bool add_second_user) {
    ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 2});
    for (int stage : {0, 1}) {
      builder.all_reduce(stage, GroupKind::data, Bytes(123'456'789), kDataComm);
    }
    if (add_second_user) {  // of the same links, long after the all-reduce
      const auto late = builder.kernels(0, 1_s);
      builder.send(0, 1, 0, Bytes(1), {late, -1});
      builder.recv(1, 0, 0, Bytes(1));
    }
    return simulate_forked(builder.build()).ops[0].end.value();
  };
  EXPECT_NEAR(step(false), step(true), 10 * kPicosecond);  // the flow rounds to whole bytes
}

}  // namespace
}  // namespace tessera::test
