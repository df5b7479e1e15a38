#include "app/search/hidden_collectives.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// Takes a quarter of the multiprocessors: products beside it take 1 / .75 times as long, so that
/// they lose a quarter of the time. Memory-bound kernels take 1.25 times as long and lose a fifth.
constexpr DeviceLoad kLoad{.multiprocessors = 0.25, .bandwidth = 0.25};

TimedSegment segment(double duration, double product_share) {
  TimedSegment timed;
  timed.duration = Seconds(duration);
  timed.product_share = product_share;
  return timed;
}

HiddenCollectives beside(const TimedSegment& kernels, double collectives) {
  HiddenCollectives hidden;
  hidden.add_kernels(kernels);
  hidden.add_collective(StreamKind::data_comm, Seconds(collectives), kLoad);
  return hidden;
}

TEST(HiddenCollectives, KernelsBesideThemTakeLonger) {
  EXPECT_NEAR(beside(segment(4, 1), 3).least_delay(Seconds(0)).value(), 3 * 0.25, 1e-12);
  EXPECT_NEAR(beside(segment(4, 0), 3).least_delay(Seconds(0)).value(), 3 * 0.2, 1e-12);
}

TEST(HiddenCollectives, WhatRunsWhereNoKernelDoesSlowsNone) {
  const HiddenCollectives hidden = beside(segment(4, 1), 3);
  EXPECT_NEAR(hidden.least_delay(Seconds(2)).value(), (3 - 2) * 0.25, 1e-12);
  EXPECT_EQ(hidden.least_delay(Seconds(3)), Seconds(0));
  EXPECT_EQ(hidden.least_delay(Seconds(5)), Seconds(0));
}

/// 2 s of memory-bound kernels hide 2.5 s of 3; the half second beside products loses more.
TEST(HiddenCollectives, KernelsThatLoseTheLeastHideThemFirst) {
  EXPECT_NEAR(beside(segment(4, 0.5), 3).least_delay(Seconds(0)).value(), 2.5 * 0.2 + 0.5 * 0.25,
              1e-12);
}

/// A second of products cannot hide 3 s: the step takes 3 s.
TEST(HiddenCollectives, WhatKernelsCannotHideComesOnTop) {
  EXPECT_NEAR(beside(segment(1, 1), 3).least_delay(Seconds(0)).value(), 3 - 1, 1e-12);
}

TEST(HiddenCollectives, ThoseThatTakeLittleHideNothingOfTheOthers) {
  HiddenCollectives hidden = beside(segment(10, 1), 3);
  hidden.add_collective(StreamKind::data_comm, Seconds(1e-3), {.multiprocessors = 0.01});
  EXPECT_NEAR(hidden.least_delay(Seconds(0)).value(), 3 * 0.25, 1e-12);
  // 10 s of products cannot hide 100 s of them.
  hidden.add_collective(StreamKind::data_comm, Seconds(100), {.multiprocessors = 0.01});
  EXPECT_GT(hidden.least_delay(Seconds(0)).value(), 90);
}

/// They run at the same time: neither adds to the other.
TEST(HiddenCollectives, OfSeveralStreamsTheCostliestCounts) {
  HiddenCollectives hidden = beside(segment(10, 1), 3);
  hidden.add_collective(StreamKind::expert_comm, Seconds(2), kLoad);
  EXPECT_NEAR(hidden.least_delay(Seconds(0)).value(), 3 * 0.25, 1e-12);
}

TEST(HiddenCollectives, WhereTheySlowNothingNothingIsAdded) {
  HiddenCollectives hidden;
  hidden.add_kernels(segment(10, 0.5));
  hidden.add_collective(StreamKind::data_comm, Seconds(3), {});
  EXPECT_EQ(hidden.least_delay(Seconds(0)), Seconds(0));
}

}  // namespace
}  // namespace tessera
