#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "sim/engine/engine.h"
#include "sim/engine/errors/time_limit_error.h"
#include "sim/process/forked_call.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

/// `segments` of 100 us on four replicas, then an all-reduce.
TimedProgram replicas(int segments) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 4});
  for (int i = 0; i < segments; ++i) builder.kernels(0, 100_us);
  builder.all_reduce(0, GroupKind::data, 1_MiB, StreamKind::compute);
  return builder.build();
}

TEST(UnevenMachine, ASlowGpuHoldsTheOthersUpAtTheirCollective) {
  TimedProgram program = replicas(10);
  const Seconds even = simulate_forked(program).step_time;
  program.paces.ranks.resize(4);
  program.paces.ranks[2].slowdown = 1.5;
  const Timeline timeline = simulate_forked(program);
  // 10 x 100 us take 1.5 ms instead of 1 ms on GPU 2
  EXPECT_NEAR((timeline.step_time - even).value(), 0.5e-3, 1e-9);
  const auto last_rank = [&] { return std::to_string(simulate(program).ops[10].last_rank); };
  EXPECT_EQ(run_forked(last_rank), "2");
  EXPECT_NEAR((timeline.ops[10].transfer_start - timeline.ops[10].start).value(), 0.5e-3, 1e-9);
}

TEST(UnevenMachine, ASlowGpuIsNotFoldedAndTheOthersAre) {
  TimedProgram program = replicas(2);
  program.simulation.fold = {};
  program.paces.ranks.resize(4);
  program.paces.ranks[2].slowdown = 1.5;
  const Timeline timeline = simulate_forked(program);
  EXPECT_EQ(timeline.folding.representative, (std::vector<int>{0, 0, 2, 0}));
  ASSERT_EQ(timeline.folding.refused.size(), 1u);
  EXPECT_EQ(timeline.folding.refused[0].reason, "GPU 0 and GPU 2: one of them is slowed down");
}

TEST(UnevenMachine, AnotherGpuRunsItsOwnDurations) {
  TimedProgram program = replicas(1);
  const Seconds even = simulate_forked(program).step_time;
  program.paces.tables.push_back(program.segments);
  program.paces.tables[0][0].duration = 300_us;
  program.paces.tables[0][0].kernel_durations = {300_us};
  program.paces.ranks.resize(4);
  program.paces.ranks[1].table = 0;
  EXPECT_NEAR((simulate_forked(program).step_time - even).value(), 200e-6, 1e-9);
}

TEST(KernelJitter, HasMeanOneAndTheSpreadThatWasAskedFor) {
  RankPaces paces;
  paces.kernel_jitter = 0.2;
  TimedSegment segment;
  segment.duration = 1_s;
  segment.kernel_durations = {1_s};
  constexpr int kDraws = 20'000;
  double sum = 0;
  double sum_of_logs = 0;
  double sum_of_squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double factor = paces.duration(i % 7, i, segment).value();
    sum += factor;
    sum_of_logs += std::log(factor);
    sum_of_squares += std::log(factor) * std::log(factor);
  }
  const double mean_log = sum_of_logs / kDraws;
  EXPECT_NEAR(sum / kDraws, 1, 0.005);  // 0.2 / sqrt(20,000) = 0.0014
  EXPECT_NEAR(mean_log, -0.02, 0.005);  // -sigma^2 / 2
  EXPECT_NEAR(std::sqrt(sum_of_squares / kDraws - mean_log * mean_log), 0.2, 0.005);
}

TEST(KernelJitter, DependsOnTheSeedAndOnNothingElse) {
  TimedProgram program = replicas(20);
  program.simulation.fold = {};
  program.paces.kernel_jitter = 0.1;
  const Timeline first = simulate_forked(program);
  EXPECT_EQ(packed(first), packed(simulate_forked(program)));
  EXPECT_FALSE(first.folding.any());
  program.paces.seed = 2;
  EXPECT_NE(first.step_time, simulate_forked(program).step_time);
}

TEST(KernelJitter, MakesAStepAsLongAsItsSlowestReplica) {
  // The largest of four sums of 100 draws exceeds their mean.
  TimedProgram program = replicas(100);
  const Seconds even = simulate_forked(program).step_time;
  program.paces.kernel_jitter = 0.3;
  const Seconds jittered = simulate_forked(program).step_time;
  EXPECT_GT(jittered, even);
  EXPECT_LT(jittered, even * 1.2);
}

TEST(TimeLimit, ARunThatTakesTooLongSaysWhereItWas) {
  TimedProgram program = replicas(20'000);
  program.simulation.time_limit = Seconds(1e-6);
  const std::string error = run_forked([&] {
    try {
      simulate(program);
    } catch (const TimeLimitError& late) {
      EXPECT_GT(late.progress().events, 0u);
      return std::string(late.what());
    }
    return std::string();
  });
  EXPECT_NE(error.find("simulation.time_limit"), std::string::npos);
  EXPECT_NE(error.find("gpu 0 stream compute op "), std::string::npos) << error;
}

TEST(TimeLimit, ARunWithinItIsNotTouched) {
  TimedProgram program = replicas(20'000);
  const Seconds expected = simulate_forked(program).step_time;
  program.simulation.time_limit = Seconds(1000);
  EXPECT_EQ(simulate_forked(program).step_time, expected);
}

}  // namespace
}  // namespace tessera::test
