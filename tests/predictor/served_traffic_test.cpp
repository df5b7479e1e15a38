#include "predictor/attention/served_traffic.h"

#include <gtest/gtest.h>

#include "hw/gpu.h"

namespace tessera {
namespace {

/// As many SMs as H100 at its clock.
GpuSpec like_h100(double bandwidth) {
  GpuSpec gpu;
  gpu.sm_count = 132;
  gpu.boost_clock = Hertz(1980e6);
  gpu.memory_bandwidth = BytesPerSecond(bandwidth);
  gpu.l2 = Bytes(50 << 20);
  return gpu;
}

TEST(ServedTraffic, StaysOnTheGpuThatItWasMeasuredOn) {
  EXPECT_NEAR(moved_conversion(4.1, "H100-SXM5-80GB", like_h100(3350e9), 3350e9), 4.1, 1e-9);
}

/// 4.1 bytes of traffic per byte of Q, where memory alone would take 2 / 0.86 = 2.33: twice the
/// bandwidth leaves what the SMs issue.
TEST(ServedTraffic, HardlyGainsFromMemoryWhereTheSmsLimitIt) {
  const double before = 4.1 / 3350e9;
  const double after = moved_conversion(4.1, "H100-SXM5-80GB", like_h100(6700e9), 6700e9) / 6700e9;
  EXPECT_LT(after, before);
  EXPECT_GT(after, 0.95 * before);
}

TEST(ServedTraffic, ComesFromTheL2WhereThatIsFasterAndHoldsIt) {
  AttentionShape shape;
  shape.operand_bytes = 30e6;  // of 52 MB
  const double l2 = 13.4 * 132 * 1980e6;
  EXPECT_DOUBLE_EQ(served_bandwidth(like_h100(900e9), shape), l2);
  EXPECT_DOUBLE_EQ(served_bandwidth(like_h100(8000e9), shape), 8000e9);
  shape.operand_bytes = 60e6;
  EXPECT_DOUBLE_EQ(served_bandwidth(like_h100(900e9), shape), 900e9);
}

TEST(ServedTraffic, TakesABlockForEverySequenceAndHead) {
  AttentionShape shape;
  shape.sequence_heads = 132 * 20;
  EXPECT_NEAR(rearrangement_of_blocks(shape, like_h100(3350e9)), 20 * 1.5e-6, 1e-12);
}

}  // namespace
}  // namespace tessera
