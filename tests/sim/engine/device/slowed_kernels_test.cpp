// Kernels beside a collective, and the collective beside them: hand-computed times.
#include <gtest/gtest.h>

#include "sim/collectives/collective.h"
#include "sim/plan/device_load.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera {
namespace {

TEST(KernelsBeside, ProductsLoseMultiprocessorsAndTheRestSharesBandwidth) {
  const DeviceLoad load{.multiprocessors = 0.2, .bandwidth = 0.5};
  EXPECT_DOUBLE_EQ(KernelsBeside({}, 0.7).stretch(), 1);
  EXPECT_DOUBLE_EQ(KernelsBeside(load, 1).stretch(), 1 / 0.8);
  EXPECT_DOUBLE_EQ(KernelsBeside(load, 0).stretch(), 1.5);
  EXPECT_DOUBLE_EQ(KernelsBeside(load, 0.5).stretch(), 0.5 / 0.8 + 0.5 * 1.5);
  const DeviceLoad all{.multiprocessors = 1.5, .bandwidth = 0};
  EXPECT_DOUBLE_EQ(KernelsBeside(all, 1).stretch(), 10) << "a tenth is left";
}

TEST(KernelsBeside, CollectivesAreSlowedByWhatIsMemoryBound) {
  const DeviceLoad load{.multiprocessors = 0.2, .bandwidth = 0.5};
  EXPECT_DOUBLE_EQ(KernelsBeside({}, 0.7).stretch_of_collectives(), 1);
  EXPECT_DOUBLE_EQ(KernelsBeside(load, 1).stretch_of_collectives(), 1);
  EXPECT_DOUBLE_EQ(KernelsBeside(load, 0).stretch_of_collectives(), 1.5);
  // 0.625 of time beside products, then 0.75 in which 0.5 is done
  EXPECT_DOUBLE_EQ(KernelsBeside(load, 0.5).stretch_of_collectives(), 1.375 / 1.125);
}

TEST(KernelsBeside, TheMemoryIsBusyAndNeverMoreThanThat) {
  for (const double bandwidth : {0.05, 0.3, 0.8}) {
    for (const double products : {0.0, 0.4, 0.9}) {
      const DeviceLoad load{.multiprocessors = 0, .bandwidth = bandwidth};
      const KernelsBeside kernels(load, products);
      const double time = kernels.stretch();
      const double of_collectives = bandwidth * time / kernels.stretch_of_collectives();
      // Beside products the memory serves the collectives alone.
      EXPECT_NEAR((1 - products) + of_collectives, (time - products) + bandwidth * products, 1e-12);
    }
  }
}

TEST(KernelsBeside, LoadsAddUp) {
  const DeviceLoad sum = DeviceLoad{0.1, 0.2} + DeviceLoad{0.05, 0.1};
  EXPECT_DOUBLE_EQ(sum.multiprocessors, 0.15);
  EXPECT_DOUBLE_EQ(sum.bandwidth, 0.3);
}

/// An all-reduce of `bytes` over two GPUs and, beside it from the start, kernels of `duration`.
struct Beside {
  Bytes bytes = 1_GiB;
  Seconds duration = 50_ms;
  double product_share = 1;
  bool slows = true;
  bool as_flow = false;  ///< somebody else uses the links, before the all-reduce
  OpKind kind = OpKind::all_reduce;
  bool copy_engines = false;
};

TimedProgram program_of(const Beside& beside) {
  test::ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 2});
  std::int32_t before = -1;
  if (beside.as_flow) {
    before = builder.all_reduce(0, GroupKind::data, 1_B, StreamKind::tensor_comm);
    before = builder.kernels(0, 1_ms, {before, -1});  // so that both forms start together
  }
  builder.collective(beside.kind, 0, GroupKind::data, beside.bytes, StreamKind::data_comm,
                     {before, -1});
  builder.kernels(0, beside.duration, {before, -1});
  TimedProgram timed = builder.build();
  timed.collectives.overrides = {{.group = GroupKind::data, .copy_engines = beside.copy_engines}};
  for (TimedSegment& segment : timed.segments) segment.product_share = beside.product_share;
  timed.collectives.slows_kernels = beside.slows;
  return timed;
}

CollectiveCost cost_of(const TimedProgram& timed, Bytes bytes) {
  const int ranks[] = {0, 1};
  return collective_cost(
      timed.topology, timed.collectives.call_of(GroupKind::data, CollectiveKind::all_reduce, bytes),
      ranks, timed.collectives.tuning());
}

class SlowedKernels : public ::testing::Test {
 protected:
  /// How long an op of GPU 0 takes: the last one are the kernels, the one before the collective.
  static Seconds duration_of(const Beside& beside, std::size_t from_last) {
    const TimedProgram timed = program_of(beside);
    const std::size_t op = timed.program.stages[0].ops.size() - from_last;
    const Timeline timeline = test::simulate_forked(timed);
    const OpRecord& record = timeline.ops[op];
    return record.end - record.start;
  }
  static Seconds end_of_kernels(const Beside& beside) { return duration_of(beside, 1); }
  static Seconds end_of_collective(const Beside& beside) { return duration_of(beside, 2); }
  /// What the all-reduce takes of the 100 multiprocessors and 2 TB/s of the test's GPU.
  static DeviceLoad load_of(const Beside& beside) {
    const CollectiveCost cost = cost_of(program_of(beside), beside.bytes);
    return {cost.gpu.multiprocessors / 100.0,
            cost.gpu.memory_bytes / cost.solo_time.value() / 2e12};
  }
  static Seconds collective_time(const Beside& beside) {
    return cost_of(program_of(beside), beside.bytes).solo_time;
  }
};

TEST_F(SlowedKernels, ThatEndBeforeTheCollectiveTakeTheWholeStretch) {
  const Beside products{.bytes = 4_GiB, .duration = 1_ms};
  const DeviceLoad load = load_of(products);
  ASSERT_GT(load.multiprocessors, 0);
  ASSERT_GT(collective_time(products), 2_ms);
  EXPECT_NEAR(end_of_kernels(products).value(), 1e-3 / (1 - load.multiprocessors), 1e-9);
  const Beside others{.bytes = 4_GiB, .duration = 1_ms, .product_share = 0};
  EXPECT_NEAR(end_of_kernels(others).value(), 1e-3 * (1 + load.bandwidth), 1e-9);
}

TEST_F(SlowedKernels, RunAtFullPaceOnceTheCollectiveHasEnded) {
  const Beside beside{.bytes = 100_MiB, .duration = 50_ms};
  const double taken = load_of(beside).multiprocessors;
  const double collective = collective_time(beside).value();
  ASSERT_LT(collective, 0.040);
  // while it ran, collective * (1 - taken) of the work was done
  EXPECT_NEAR(end_of_kernels(beside).value(), 0.050 + collective * taken, 1e-7);
}

TEST_F(SlowedKernels, KeepTheirMultiprocessorsBesideCopyEngines) {
  for (const OpKind kind : {OpKind::all_gather, OpKind::all_to_all, OpKind::broadcast}) {
    Beside products{.bytes = 16_GiB, .duration = 1_ms, .kind = kind};
    EXPECT_GT(end_of_kernels(products), 1.01_ms);
    products.copy_engines = true;
    EXPECT_NEAR(end_of_kernels(products).value(), 1e-3, 1e-12);
  }
}

TEST_F(SlowedKernels, LoseThemToWhatCopyEnginesCannotReduce) {
  const Beside reduced{.bytes = 4_GiB, .duration = 1_ms, .copy_engines = true};
  EXPECT_GT(end_of_kernels(reduced), 1.01_ms);
}

TEST_F(SlowedKernels, OnlyWhereAsked) {
  EXPECT_EQ(end_of_kernels({.bytes = 4_GiB, .duration = 1_ms, .slows = false}), 1_ms);
}

using SlowedCollectives = SlowedKernels;

TEST_F(SlowedCollectives, KeepTheirTimeBesideProducts) {
  const Beside products{.bytes = 100_MiB, .duration = 50_ms};
  EXPECT_NEAR(end_of_collective(products).value(), collective_time(products).value(), 1e-12);
}

TEST_F(SlowedCollectives, TakeTheWholeStretchBesideMemoryBoundKernels) {
  for (const bool as_flow : {false, true}) {
    const Beside others{
        .bytes = 100_MiB, .duration = 50_ms, .product_share = 0, .as_flow = as_flow};
    const CollectiveCost cost = cost_of(program_of(others), others.bytes);
    const double moving = (cost.solo_time - cost.latency).value();
    const double expected = cost.latency.value() + moving * (1 + load_of(others).bandwidth);
    ASSERT_LT(expected, 0.050);
    EXPECT_NEAR(end_of_collective(others).value(), expected, 1e-9) << as_flow;
  }
}

TEST_F(SlowedCollectives, RunAtFullPaceOnceTheKernelsHaveEnded) {
  for (const bool as_flow : {false, true}) {
    const Beside others{.bytes = 4_GiB, .duration = 1_ms, .product_share = 0, .as_flow = as_flow};
    const CollectiveCost cost = cost_of(program_of(others), others.bytes);
    const double taken = load_of(others).bandwidth;
    // beside the kernels 1 / (1 + taken) of what moves alone is moved
    const double beside = 1e-3 * (1 + taken) - cost.latency.value();
    const double expected = cost.solo_time.value() + beside * taken / (1 + taken);
    EXPECT_NEAR(end_of_collective(others).value(), expected, 1e-9) << as_flow;
  }
}

/// An all-reduce between two stages. Stage 0 has memory-bound kernels of 1 ms beside it, stage 1
/// joins `late`.
Timeline two_stages(Seconds late) {
  test::ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.all_reduce(0, GroupKind::pipeline, 1_GiB, StreamKind::data_comm);
  builder.kernels(0, 1_ms);
  std::int32_t before = -1;
  if (late > 0_s) before = builder.kernels(1, late);
  builder.all_reduce(1, GroupKind::pipeline, 1_GiB, StreamKind::data_comm, {before, -1});
  TimedProgram timed = builder.build();
  timed.collectives.slows_kernels = true;
  return test::simulate_forked(timed);
}

TEST(SlowedCollective, TheBusiestMemorySetsThePace) {
  const Timeline timeline = two_stages(0_s);
  const Seconds alone = two_stages(2_ms).step_time - 2_ms;
  EXPECT_EQ(timeline.ops[0].end, timeline.ops[2].end) << "on the idle GPU of stage 1 as well";
  EXPECT_GT(timeline.ops[2].end, alone + 100_us);
}

TEST(SlowedCollective, TakesNoBandwidthBeforeEveryoneHasJoined) {
  EXPECT_NEAR(two_stages(2_ms).ops[1].end.value(), 1e-3, 1e-12);
}

}  // namespace
}  // namespace tessera
