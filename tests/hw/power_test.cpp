#include "hw/power.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/validation.h"

namespace tessera {
namespace {

/// 300 W, 45 W of them idle.
GpuSpec gpu() {
  GpuSpec spec;
  spec.id = "test";
  spec.sm_count = 100;
  spec.boost_clock = Hertz(1.4e9);
  spec.fp32 = spec.bf16 = FlopsPerSecond(1e14);
  spec.memory = Bytes(1 << 30);
  spec.memory_bandwidth = BytesPerSecond(1e12);
  spec.tdp = Watts(300);
  return spec;
}

TEST(DynamicPower, FallsFasterThanTheClockNearTheTopAndWithItAtTheFloor) {
  EXPECT_DOUBLE_EQ(dynamic_power_share(1), 1);
  // 0.95 (0.5 + 0.5 * 0.95^9 = 0.6302) = 0.774: 5 % of clock for 23 % of power.
  EXPECT_NEAR(dynamic_power_share(0.95), 0.774, 1e-3);
  EXPECT_NEAR(dynamic_power_share(0.2), 0.1, 1e-5);  // half of the voltage squared
}

TEST(PowerLimit, WithoutOneNothingChanges) {
  EXPECT_DOUBLE_EQ(clock_share(gpu()), 1);
  EXPECT_DOUBLE_EQ(at_power_limit(gpu()).fp32.value(), 1e14);
}

TEST(PowerLimit, TheMeanIsKeptBelowTheCap) {
  GpuSpec capped = gpu();
  capped.power_limit = Watts(200);
  const double clock = clock_share(capped);
  // 45 W idle and 255 W of work at the boost clock; the mean is 0.88 of the cap.
  EXPECT_NEAR(45 + 255 * dynamic_power_share(clock), 0.88 * 200, 0.01);
  EXPECT_NEAR(at_power_limit(capped).bf16.value(), 1e14 * clock, 1);
  EXPECT_DOUBLE_EQ(at_power_limit(capped).memory_bandwidth.value(), 1e12);
}

TEST(PowerLimit, ATighterCapIsSlower) {
  double last = 1;
  for (const double watts : {300.0, 250.0, 200.0, 150.0, 100.0}) {
    const double clock = clock_under_cap(Watts(45), Watts(300), Watts(watts));
    EXPECT_LT(clock, last) << watts;
    last = clock;
  }
  EXPECT_DOUBLE_EQ(clock_under_cap(Watts(45), Watts(100), Watts(300)), 1);  // never reaches it
}

TEST(PowerLimit, OutsideOfWhatABoardCanIsRefused) {
  GpuSpec spec = gpu();
  for (const double watts : {301.0, 60.0}) {
    spec.power_limit = Watts(watts);
    ASSERT_EQ(problems_of(spec).size(), 1u) << watts;
    EXPECT_EQ(problems_of(spec).front().where, "power_limit");
  }
}

}  // namespace
}  // namespace tessera
