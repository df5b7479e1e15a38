// Kernels beside a collective: hand-computed times.
#include <gtest/gtest.h>

#include "sim/collectives/collective.h"
#include "sim/engine/device_load.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera {
namespace {

TEST(Stretch, ProductsLoseMultiprocessorsAndTheRestLosesBandwidth) {
  const DeviceLoad load{.multiprocessors = 0.2, .bandwidth = 0.5};
  EXPECT_DOUBLE_EQ(stretch({}, 0.7), 1);
  EXPECT_DOUBLE_EQ(stretch(load, 1), 1 / 0.8);
  EXPECT_DOUBLE_EQ(stretch(load, 0), 2);
  EXPECT_DOUBLE_EQ(stretch(load, 0.5), 0.5 / 0.8 + 0.5 * 2);
  EXPECT_DOUBLE_EQ(stretch({.multiprocessors = 1.5, .bandwidth = 0}, 1), 10) << "a tenth is left";
}

TEST(Stretch, LoadsAddUp) {
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
};

TimedProgram program_of(const Beside& beside) {
  test::ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 2});
  builder.all_reduce(0, GroupKind::data, beside.bytes, StreamKind::data_comm);
  builder.kernels(0, beside.duration);
  TimedProgram timed = builder.build();
  timed.segments[0].product_share = beside.product_share;
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
  /// End of the kernels on GPU 0.
  static Seconds end_of_kernels(const Beside& beside) {
    const Timeline timeline = test::simulate_forked(program_of(beside));
    for (const OpRecord& record : timeline.ops) {
      if (record.rank == 0 && record.op == 1) return record.end;
    }
    return {};
  }
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
  EXPECT_NEAR(end_of_kernels(others).value(), 1e-3 / (1 - load.bandwidth), 1e-9);
}

TEST_F(SlowedKernels, RunAtFullPaceOnceTheCollectiveHasEnded) {
  const Beside beside{.bytes = 100_MiB, .duration = 50_ms};
  const double taken = load_of(beside).multiprocessors;
  const double collective = collective_time(beside).value();
  ASSERT_LT(collective, 0.040);
  // while it ran, collective * (1 - taken) of the work was done
  EXPECT_NEAR(end_of_kernels(beside).value(), 0.050 + collective * taken, 1e-7);
}

TEST_F(SlowedKernels, OnlyWhereAsked) {
  EXPECT_EQ(end_of_kernels({.bytes = 4_GiB, .duration = 1_ms, .slows = false}), 1_ms);
}

}  // namespace
}  // namespace tessera
