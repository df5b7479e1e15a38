#include "lab/predict/evaluation.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/predict/source_spreads.h"
#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

// 2 * 4096^3 FLOP / 14 TFLOP/s
constexpr double kCubeMicroseconds = 2.0 * 4096 * 4096 * 4096 / 14e6;

KernelScores score(const ScratchFolder& folder, const std::string& rows) {
  const auto path = folder.write("rows.csv", kMeasurementHeader + rows);
  return score_kernels(path, {}, PredictorForm::roofline, test_gpu);
}

nlohmann::json json_of(const KernelScores& scores) {
  std::string text;
  write_scores_json(scores, [&](const std::string& piece) { text += piece; });
  return nlohmann::json::parse(text);
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
  ASSERT_EQ(scores.rows.size(), 1u);
  EXPECT_NEAR(scores.rows[0].predicted_us, kCubeMicroseconds, 1e-6);
  EXPECT_TRUE(scores.groups.empty());
}

TEST(Evaluation, AGpuThatNobodyDescribedCostsItsRowsAlone) {
  const ScratchFolder folder;
  const Kernel cube = linear_kernel(4096, 4096, 4096);
  const KernelScores scores = score(folder, product_row("V100-PCIe-32GB", "linear", cube, 1e3) +
                                                product_row("Abacus", "linear", cube, 1e3) +
                                                product_row("V100-PCIe-32GB", "bmm", cube, 1e3));
  ASSERT_EQ(scores.rows.size(), 3u);
  EXPECT_NE(scores.rows[1].skipped.find("Abacus"), std::string::npos) << scores.rows[1].skipped;
  EXPECT_EQ(scores.groups.size(), 2u);
  const auto skipped = skipped_kernels(scores);
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0].line, 3u);
  const auto json = json_of(scores)["skipped"];
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["id"], "line 3");
  EXPECT_EQ(json[0]["reason"], scores.rows[1].skipped);
}

TEST(Evaluation, QueuedCallsArePredictedWithoutTheirLaunchGap) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv",
                                 "gpu,op,batch,m,n,k,rows,cols,timing\nT4,add,,,,,64,64,isolated\n"
                                 "T4,add,,,,,64,64,graph\nT4,add,,,,,64,64,queue\n");
  const PredictorWeights weights = load_weights(committed_weights());
  const KernelScores scores = score_kernels(path, weights, PredictorForm::tessera, test_gpu);
  // Three tensors of 16 KiB: far below the floor of an isolated call on T4, about 30 us.
  EXPECT_GT(scores.rows[0].predicted_us, 20);
  EXPECT_LT(scores.rows[1].predicted_us, 5);
  EXPECT_EQ(scores.rows[1].predicted_us, scores.rows[2].predicted_us);
}

TEST(Evaluation, RowsOfAnotherPrecisionAreRefused) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv", "gpu,dtype,m,n,k,latency_us\nT4,fp16,8,8,8,3\n");
  try {
    score_kernels(path, {}, PredictorForm::roofline, test_gpu);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems()[0].what, "holds no row that can be predicted");
    EXPECT_NE(error.problems()[0].hint.find("fp16"), std::string::npos);
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
  for (const KernelScore& row : scores.rows) {
    EXPECT_GT(row.predicted_us, 3524 / 0.97);
    EXPECT_LT(row.predicted_us, 3524 / 0.75);
  }
  EXPECT_NE(scores.rows[0].predicted_us,
            scores.rows[1].predicted_us);  // a known library and an unknown one
  ASSERT_EQ(scores.groups.size(), 2u);
  EXPECT_EQ(scores.groups[0].op, "linear bf16");
  EXPECT_EQ(scores.groups[0].n, 2);
  EXPECT_EQ(scores.groups[1].op, "linear fp16");
  EXPECT_THROW(score_kernels(path, weights, PredictorForm::neusight, half_test_gpu), InputError);
}

TEST(Evaluation, TheCsvGainsOneColumn) {
  const ScratchFolder folder;
  const std::string row = "V100-PCIe-32GB,linear,test,1,4096,4096,4096,,,,\"a, b\",,,";
  std::string text;
  write_predicted_csv(score(folder, row + "\n"), [&](const std::string& piece) { text += piece; });
  std::string header = kMeasurementHeader;
  header.pop_back();
  EXPECT_EQ(text, header + ",predicted_us\n" + row + ",9817.07\n");
}

TEST(Evaluation, TheJsonHoldsOneEntryPerGroup) {
  const ScratchFolder folder;
  const Kernel cube = linear_kernel(4096, 4096, 4096);
  const auto json =
      json_of(score(folder, product_row("V100-PCIe-32GB", "linear", cube, 2 * kCubeMicroseconds)));
  ASSERT_EQ(json["groups"].size(), 1u);
  const auto& group = json["groups"][0];
  EXPECT_EQ(group["gpu"], "V100-PCIe-32GB");
  EXPECT_EQ(group["op"], "linear");
  EXPECT_EQ(group["n"], 1);
  EXPECT_NEAR(group["mean_abs_error_pct"].get<double>(), 50, 1e-3);
  EXPECT_NEAR(group["median_abs_error_pct"].get<double>(), 50, 1e-3);
  EXPECT_TRUE(group["coverage_80_pct"].is_null());  // a roofline knows no interval
}

/// An interval of e^0.1 = 1.105 times the prediction holds 1.10 times it and not 1.12 times.
TEST(Evaluation, CountsTheIntervalsThatHoldTheMeasurement) {
  const auto text = std::make_shared<const std::string>("abc");
  KernelScores scores{.text = text, .header = {}};
  scores.gpus = {"V100-PCIe-32GB"};
  scores.ops = {"linear"};
  const auto add = [&](std::size_t at, double measured, double half_width) {
    scores.rows.push_back({.line = std::string_view(*text).substr(at, 1),
                           .measured_us = measured,
                           .predicted_us = 100,
                           .half_width = half_width,
                           .predicted_as = {},
                           .skipped = {}});
  };
  add(0, 110, 0.1);
  add(1, 112, 0.1);
  add(2, 100, 0);  // without one
  finish_scores(scores, "rows.csv");
  ASSERT_EQ(scores.groups.size(), 1u);
  EXPECT_EQ(scores.groups[0].n, 3);
  EXPECT_EQ(scores.groups[0].held_pct, 50);
}

TEST(Evaluation, TheJsonHoldsEveryColumnOfEveryRow) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv",
                                 "gpu,op,batch,m,n,k,rows,cols,latency_us,note\n"
                                 "V100-PCIe-32GB,linear,1,4096,4096,4096,,,4908.535,\"a \\ b\"\n"
                                 "V100-PCIe-32GB,linear,1,4096,4096,4096,,,,007\n");
  const auto json = json_of(score_kernels(path, {}, PredictorForm::roofline, test_gpu));
  ASSERT_EQ(json["rows"].size(), 2u);
  const auto &timed = json["rows"][0], &untimed = json["rows"][1];
  EXPECT_EQ(timed["gpu"], "V100-PCIe-32GB");
  EXPECT_EQ(timed["m"], 4096);
  EXPECT_TRUE(timed["rows"].is_null());
  EXPECT_EQ(timed["note"], "a \\ b");
  EXPECT_NEAR(timed["predicted_us"].get<double>(), kCubeMicroseconds, 0.01);
  EXPECT_NEAR(timed["error_pct"].get<double>(), 100, 1e-3);  // 9817 us against 4908.5
  EXPECT_TRUE(timed["skipped"].is_null());
  EXPECT_TRUE(untimed["error_pct"].is_null());
  EXPECT_EQ(untimed["note"], "007");  // no number in JSON
}

TEST(Evaluation, AttentionIsPredictedAsItWasTimedAndUnfusedRowsAreSkipped) {
  const ScratchFolder folder;
  const std::string header =
      "gpu,dtype,direction,causal,batch,heads,kv_heads,head_dim,seq_q,seq_kv,latency_us,tflops,"
      "stack,source\n";
  const auto row = [](const char* stack) {
    return std::string("A100-SXM4-80GB,bf16,forward,1,4,32,32,128,4096,4096,1000,1,") + stack +
           ",x\n";
  };
  const auto path =
      folder.write("attention.csv", header + row("vllm/vllm_flash_attn") + row("FlashAttention-2") +
                                        row("PyTorch standard"));
  const PredictorWeights weights = load_weights(committed_weights());
  const KernelScores scores = score_kernels(path, weights, PredictorForm::tessera, half_test_gpu);
  // 4 * 4 * 32 * 4096^2 * 128 / 2 FLOP = 0.55 TFLOP: 1.76 ms at the peak of 312 TFLOP/s. The server
  // also writes its cache and rearranges Q, K and V.
  EXPECT_GT(scores.rows[1].predicted_us, 1762);
  EXPECT_GT(scores.rows[0].predicted_us, 1.02 * scores.rows[1].predicted_us);
  EXPECT_NE(scores.rows[2].skipped.find("unfused"), std::string::npos);
  ASSERT_EQ(scores.groups.size(), 1u);
  EXPECT_EQ(scores.groups[0].n, 2);
  const auto json = json_of(scores);
  EXPECT_TRUE(json["rows"][2]["predicted_us"].is_null());
  EXPECT_TRUE(json["rows"][2]["skipped"].is_string());
  const KernelScores bound = score_kernels(path, weights, PredictorForm::roofline, half_test_gpu);
  EXPECT_NEAR(bound.rows[0].predicted_us, 1762, 1);
  EXPECT_THROW(score_kernels(path, weights, PredictorForm::neusight, half_test_gpu), InputError);
}

/// An 8-bit cache is predicted as a 16-bit one, by a profile that was fitted to such calls: what is
/// added to its spread is the source alone.
TEST(Evaluation, ACallThatNoProfileWasFittedToIsAsUncertainAsItsSource) {
  const ScratchFolder folder;
  const std::string call =
      "A100-SXM4-80GB,bf16,forward,1,4,32,32,128,4096,4096,1000,vllm/vllm_flash_attn,x,";
  const auto path = folder.write(
      "attention.csv",
      "gpu,dtype,direction,causal,batch,heads,kv_heads,head_dim,seq_q,seq_kv,latency_us,stack,"
      "source,kv_cache_dtype\n" +
          call + "bf16\n" + call + "fp8\n");
  const PredictorWeights weights = load_weights(committed_weights());
  const KernelScores scores = score_kernels(path, weights, PredictorForm::tessera, half_test_gpu);
  EXPECT_EQ(scores.rows[0].predicted_as, "");
  EXPECT_EQ(scores.rows[1].predicted_as, "a cache in fp8 as one in bf16");
  EXPECT_EQ(scores.rows[0].predicted_us, scores.rows[1].predicted_us);
  EXPECT_GT(scores.rows[0].half_width, 0);
  constexpr double kEightyPercent = 1.2816;
  const double source = kEightyPercent * source_spread::kOtherAttention;
  EXPECT_NEAR(scores.rows[1].half_width, std::hypot(scores.rows[0].half_width, source), 1e-9);
  const KernelScores bound = score_kernels(path, weights, PredictorForm::roofline, half_test_gpu);
  EXPECT_EQ(bound.rows[1].half_width, 0);  // a roofline knows no interval
}

TEST(Evaluation, SixteenBitMemoryBoundRowsTakeTheServersKernels) {
  const ScratchFolder folder;
  const auto path = folder.write("memory.csv",
                                 "gpu,op,rows,cols_in,cols_out,bytes_min,time_us,tp\n"
                                 "A100-SXM4-80GB,add,4096,8192,8192,201326592,112,1\n"
                                 "A100-SXM4-80GB,add_twice,4096,8192,8192,402653184,,1\n");
  const PredictorWeights weights = load_weights(committed_weights());
  const KernelScores scores = score_kernels(path, weights, PredictorForm::tessera, half_test_gpu);
  // 201 MB at 1.8 TB/s (measurements/kernels/README.md)
  EXPECT_NEAR(scores.rows[0].predicted_us, 112, 10);
  EXPECT_DOUBLE_EQ(scores.rows[1].predicted_us, 2 * scores.rows[0].predicted_us);
  ASSERT_EQ(scores.groups.size(), 1u);
  EXPECT_EQ(scores.groups[0].op, "add fp16");
}

TEST(Evaluation, UnknownGpusAreRefused) {
  const ScratchFolder folder;
  EXPECT_THROW(score(folder, product_row("Z9", "linear", linear_kernel(8, 8, 8), 1)), InputError);
}

}  // namespace
}  // namespace tessera
