#include "predictor/measured/nearest_measurements.h"

#include <gtest/gtest.h>

#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

const PredictorWeights& weights() {
  static const PredictorWeights loaded = load_weights(committed_weights());
  return loaded;
}

std::vector<NearMeasurement> nearest(const std::string& rows, const KernelMeasurement& kernel,
                                     std::size_t count) {
  const ScratchFolder folder;
  const MeasurementFile file =
      read_measurements(folder.write("fp32.csv", kMeasurementHeader + rows));
  return nearest_measurements(file, kernel, test_gpu("T4"), weights(), test_gpu, count);
}

std::string linear_row(const std::string& gpu, std::int64_t m, const char* split = "train") {
  return product_row(gpu, "linear", linear_kernel(m, 1024, 1024), 100, split);
}

const KernelMeasurement kAsked{
    .op = MeasuredOp::linear, .batch = 1, .m = 1024, .n = 1024, .k = 1024};

TEST(NearestMeasurements, AreSortedByDistanceWithTheOwnGpuFirst) {
  const auto near = nearest(linear_row("V100-PCIe-32GB", 1024) + linear_row("T4", 4096) +
                                linear_row("T4", 512) + linear_row("T4", 8192),
                            kAsked, 3);
  ASSERT_EQ(near.size(), 3U);
  EXPECT_EQ(near[0].row.m, 512);
  EXPECT_DOUBLE_EQ(near[0].octaves, 1);  // 1024 / 512
  EXPECT_EQ(near[1].row.m, 4096);
  EXPECT_DOUBLE_EQ(near[1].octaves, 2);
  EXPECT_EQ(near[2].row.m, 8192);  // three octaves off, but the same GPU
}

TEST(NearestMeasurements, OtherGpusFollowWithTheirOwnPrediction) {
  const auto near = nearest(linear_row("V100-PCIe-32GB", 1024) + linear_row("T4", 1024), kAsked, 5);
  ASSERT_EQ(near.size(), 2U);
  EXPECT_EQ(near[1].gpu, "V100-PCIe-32GB");
  EXPECT_LT(near[1].predicted, near[0].predicted);  // 14 against 8.1 TFLOP/s
  EXPECT_DOUBLE_EQ(near[1].measured.value(), 100e-6);
}

TEST(NearestMeasurements, HeldOutRowsAreAmongThemAndOtherOperatorsAreNot) {
  const Kernel batched = batched_kernel(1, 1024, 1024, 1024);
  const auto near =
      nearest(product_row("T4", "bmm", batched, 100) + linear_row("T4", 900, "test"), kAsked, 5);
  ASSERT_EQ(near.size(), 1U);
  EXPECT_TRUE(near[0].row.test);
}

TEST(NearestMeasurements, OnlyAllRowsOfALinearLayerCount) {
  Kernel flat = linear_kernel(256, 1024, 1024);
  flat.batch = 4;  // 4 * 256 rows
  const auto near = nearest(product_row("T4", "linear", flat, 100), kAsked, 1);
  ASSERT_EQ(near.size(), 1U);
  EXPECT_EQ(near[0].octaves, 0);
}

}  // namespace
}  // namespace tessera
