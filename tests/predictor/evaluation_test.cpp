#include "predictor/evaluation.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/predictor/half/half_gpus.h"
#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

// 2 * 4096^3 FLOP / 14 TFLOP/s
constexpr double kCubeMicroseconds = 2.0 * 4096 * 4096 * 4096 / 14e6;

KernelScores score(const ScratchFolder& folder, const std::string& rows) {
  const auto path = folder.write("rows.csv", kMeasurementHeader + rows);
  return score_kernels(path, {}, PredictorForm::roofline, test_gpu);
}

TEST(Evaluation, ErrorIsRelativeToTheMeasurementPerGpuAndOp) {
  const ScratchFolder folder;
  const Kernel cube = linear_kernel(4096, 4096, 4096);
  const KernelScores scores =
      score(folder, product_row("V100-PCIe-32GB", "linear", cube, 2 * kCubeMicroseconds) +
                        product_row("V100-PCIe-32GB", "linear", cube, kCubeMicroseconds) +
                        product_row("V100-PCIe-32GB", "linear", cube, kCubeMicroseconds / 2) +
                        product_row("T4", "bmm", cube, 1e6));
  ASSERT_EQ(scores.groups.size(), 2u);
  EXPECT_EQ(scores.groups[0].gpu, "V100-PCIe-32GB");
  EXPECT_EQ(scores.groups[0].op, "linear");
  EXPECT_EQ(scores.groups[0].n, 3);
  // errors of 50, 0 and 100 %
  EXPECT_NEAR(scores.groups[0].mean_abs_error_pct, 50, 1e-3);
  EXPECT_NEAR(scores.groups[0].median_abs_error_pct, 50, 1e-3);
  EXPECT_EQ(scores.groups[1].op, "bmm");
}

TEST(Evaluation, UntimedRowsArePredictedButNotScored) {
  const ScratchFolder folder;
  const KernelScores scores = score(folder, "V100-PCIe-32GB,linear,test,1,4096,4096,4096,,,,,,,\n");
  ASSERT_EQ(scores.predicted_us.size(), 1u);
  EXPECT_NEAR(scores.predicted_us[0], kCubeMicroseconds, 1e-6);
  EXPECT_TRUE(scores.groups.empty());
}

TEST(Evaluation, QueuedCallsArePredictedWithoutTheirLaunchGap) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv",
                                 "gpu,op,batch,m,n,k,rows,cols,timing\nT4,add,,,,,64,64,isolated\n"
                                 "T4,add,,,,,64,64,graph\nT4,add,,,,,64,64,queue\n");
  const PredictorWeights weights = load_weights(committed_weights());
  const KernelScores scores = score_kernels(path, weights, PredictorForm::tessera, test_gpu);
  // Three tensors of 16 KiB: far below the floor of an isolated call on T4, about 30 us.
  EXPECT_GT(scores.predicted_us[0], 20);
  EXPECT_LT(scores.predicted_us[1], 5);
  EXPECT_EQ(scores.predicted_us[1], scores.predicted_us[2]);
}

TEST(Evaluation, RowsOfAnotherPrecisionAreRefused) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv", "gpu,dtype,m,n,k,latency_us\nT4,fp16,8,8,8,3\n");
  try {
    score_kernels(path, {}, PredictorForm::roofline, test_gpu);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems()[0].what, "holds rows of dtype fp16");
  }
}

TEST(Evaluation, HalfPrecisionProductsTakeTheModelOfTensorCores) {
  const ScratchFolder folder;
  const auto path = folder.write("half.csv",
                                 "gpu,dtype,stack,m,n,k,latency_us\n"
                                 "A100-SXM4-80GB,bf16,vllm,8192,8192,8192,4200\n"
                                 "A100-SXM4-80GB,bf16,other,8192,8192,8192,4200\n"
                                 "A100-SXM4-80GB,fp16,,8192,8192,8192,4200\n");
  const PredictorWeights weights = load_weights(committed_weights());
  const KernelScores scores = score_kernels(path, weights, PredictorForm::tessera, half_test_gpu);
  // 2 * 8192^3 FLOP at 312 TFLOP/s take 3.52 ms; large products reach 0.75 to 0.97 of the peak.
  for (const double predicted : scores.predicted_us) {
    EXPECT_GT(predicted, 3524 / 0.97);
    EXPECT_LT(predicted, 3524 / 0.75);
  }
  EXPECT_NE(scores.predicted_us[0], scores.predicted_us[1]);  // a known library and an unknown one
  ASSERT_EQ(scores.groups.size(), 2u);
  EXPECT_EQ(scores.groups[0].op, "linear bf16");
  EXPECT_EQ(scores.groups[0].n, 2);
  EXPECT_EQ(scores.groups[1].op, "linear fp16");
  EXPECT_THROW(score_kernels(path, weights, PredictorForm::neusight, half_test_gpu), InputError);
}

TEST(Evaluation, TheCsvGainsOneColumn) {
  const ScratchFolder folder;
  const std::string row = "V100-PCIe-32GB,linear,test,1,4096,4096,4096,,,,\"a, b\",,,";
  const std::string text = predicted_csv(score(folder, row + "\n"));
  std::string header = kMeasurementHeader;
  header.pop_back();
  EXPECT_EQ(text, header + ",predicted_us\n" + row + ",9817.07\n");
}

TEST(Evaluation, TheJsonHoldsOneEntryPerGroup) {
  const ScratchFolder folder;
  const Kernel cube = linear_kernel(4096, 4096, 4096);
  const auto json = nlohmann::json::parse(error_groups_json(
      score(folder, product_row("V100-PCIe-32GB", "linear", cube, 2 * kCubeMicroseconds))));
  ASSERT_EQ(json["groups"].size(), 1u);
  const auto& group = json["groups"][0];
  EXPECT_EQ(group["gpu"], "V100-PCIe-32GB");
  EXPECT_EQ(group["op"], "linear");
  EXPECT_EQ(group["n"], 1);
  EXPECT_NEAR(group["mean_abs_error_pct"].get<double>(), 50, 1e-3);
  EXPECT_NEAR(group["median_abs_error_pct"].get<double>(), 50, 1e-3);
}

TEST(Evaluation, UnknownGpusAreRefused) {
  const ScratchFolder folder;
  EXPECT_THROW(score(folder, product_row("Z9", "linear", linear_kernel(8, 8, 8), 1)), InputError);
}

}  // namespace
}  // namespace tessera
