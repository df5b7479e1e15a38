#include "lab/fit/tensor/tensor_training.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/fit/studies/tensor_study.h"
#include "tests/predictor/tensor/half_test_data.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/weights_bytes.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "gpu,dtype,m,n,k,latency_us,stack,source\n";

std::string line(const std::string& gpu, Precision precision, const TensorShape& s, double seconds,
                 const std::string& stack) {
  char text[200];
  std::snprintf(text, sizeof text, "%s,%s,%d,%d,%d,%.9g,%s,made up\n", gpu.c_str(),
                std::string(name_of(precision)).c_str(), static_cast<int>(s.m),
                static_cast<int>(s.n), static_cast<int>(s.k), seconds * 1e6, stack.c_str());
  return text;
}

/// What the model with `weights` takes on a grid of shapes, for every GPU and library.
std::string synthetic_rows(const TensorWeights& weights) {
  std::string text = kHeader;
  for (const TensorGpuWeights& gpu : weights.gpus)
    for (const TensorStackWeights& stack : gpu.stacks)
      for (const int m : {1, 17, 64, 130, 500, 1024, 1500, 3000, 8192, 32768})
        for (const int n : {64, 768, 2560, 4096, 12288})
          for (const int k : {64, 256, 1024, 3584, 8192, 28672}) {
            const TensorShape s = tensor_shape(half_product(m, n, k));
            const double seconds =
                tensor_gemm_seconds(s, tensor_traits(tensor_gpu(gpu.gpu), stack.precision),
                                    weights.shared, gpu.effect, stack.effect) +
                stack.effect.launch_seconds;
            text += line(gpu.gpu, stack.precision, s, seconds, stack.name);
          }
  return text;
}

TensorData read_text(const ScratchFolder& folder, const std::string& text) {
  return read_tensor_rows(folder.write("tensor_core.csv", text), tensor_gpu);
}

std::string message_of(const ScratchFolder& folder, const std::string& rows) {
  try {
    read_text(folder, kHeader + rows);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TensorRows, HoldShapeStackAndDuration) {
  const ScratchFolder folder;
  const TensorData data =
      read_text(folder, std::string(kHeader) + "A100-SXM4-80GB,bf16,81,3584,8192,56.32,sglang,x\n" +
                            "H100-SXM5-80GB,bf16,8,32,64,2.5,vllm,x\n" +
                            "A100-SXM4-80GB,fp16,8,32,64,3,vidur,x\n");
  ASSERT_EQ(data.samples.size(), 3u);
  EXPECT_EQ(data.samples[0].shape.m, 81);
  // 2 bytes of every element of the operands and the result.
  EXPECT_EQ(data.samples[0].shape.bytes, 2.0 * (81 * 8192 + 8192 * 3584 + 81 * 3584));
  EXPECT_DOUBLE_EQ(data.samples[0].seconds, 56.32e-6);
  ASSERT_EQ(data.stacks.size(), 3u);
  EXPECT_EQ(data.stacks[2].name, "vidur");
  EXPECT_EQ(data.stacks[2].gpu, 0);
  EXPECT_EQ(data.stacks[2].precision, Precision::fp16);
}

TEST(TensorRows, MalformedOnesAreNamedByLine) {
  const ScratchFolder folder;
  const std::string good = "A100-SXM4-80GB,bf16,81,3584,8192,56.32,sglang,x\n";
  EXPECT_THAT(message_of(folder, good + "A100-SXM4-80GB,bf16,0,32,64,2.5,vllm,x\n"),
              HasSubstr("tensor_core.csv:3"));
  EXPECT_THAT(message_of(folder, good + good + "A100-SXM4-80GB,fp32,8,32,64,2.5,vllm,x\n"),
              testing::AllOf(HasSubstr("tensor_core.csv:4"), HasSubstr("fp32")));
  EXPECT_THAT(message_of(folder, "A100-SXM4-80GB,bf16,8,32,64,-2,vllm,x\n"),
              testing::AllOf(HasSubstr("tensor_core.csv:2"), HasSubstr("-2")));
  EXPECT_THAT(message_of(folder, "A100-SXM4-80GB,bf16,8,32,64,,vllm,x\n"), HasSubstr("duration"));
  EXPECT_THAT(message_of(folder, "A100-SXM4-80GB,bf16,8,32,64,2.5,,x\n"), HasSubstr("stack"));
  EXPECT_THAT(message_of(folder, "Z9,bf16,8,32,64,2.5,vllm,x\n"), HasSubstr("Z9"));
  EXPECT_THAT(message_of(folder, ""), HasSubstr("holds no row"));
  EXPECT_EQ(message_of(folder, good), "");
}

TEST(TensorHoldouts, KeepAFifthAndWholeMatrices) {
  int shapes = 0, all = 0;
  for (int n = 64; n <= 6400; n += 64) {
    const TensorShape one{.m = 8, .n = static_cast<double>(n), .k = 4096};
    TensorShape other = one;
    other.m = 4000;
    EXPECT_EQ(held_out(one, TensorHoldout::matrices), held_out(other, TensorHoldout::matrices));
    EXPECT_FALSE(held_out(one, TensorHoldout::none));
    for (int m = 8; m <= 800; m += 8, ++all)
      shapes +=
          held_out({.m = static_cast<double>(m), .n = one.n, .k = one.k}, TensorHoldout::shapes);
  }
  EXPECT_NEAR(shapes, all / 5, all / 50);
}

TEST(TensorTraining, RecoversPlantedParameters) {
  const ScratchFolder folder;
  const TensorWeights planted = plausible_weights();
  const TensorData data = read_text(folder, synthetic_rows(planted));
  const TensorFit fit = fit_tensor_gemm(data, data.samples);
  EXPECT_LT(fit.mean_absolute, 0.01);
  EXPECT_NEAR(fit.shared.prologue, 200, 20);
  EXPECT_NEAR(fit.shared.split_seconds, 2.5e-6, 0.4e-6);
  EXPECT_NEAR(fit.stacks[0].quantisation, 0.8, 0.05);
  EXPECT_NEAR(fit.stacks[1].quantisation, 0.4, 0.05);
  EXPECT_NEAR(fit.stacks[2].quantisation, 0.15, 0.05);
  EXPECT_NEAR(fit.stacks[1].launch_seconds, 1.1e-6, 0.2e-6);
  // A GPU's slowdown and those of its libraries appear as sums.
  EXPECT_NEAR(fit.gpus[0].memory + fit.stacks[0].memory, 0.20, 0.03);
  EXPECT_NEAR(fit.stacks[1].compute - fit.stacks[0].compute, 0.14, 0.03);
  EXPECT_NEAR(fit.gpus[1].cap + fit.stacks[2].compute, 0.17, 0.03);
}

TEST(TensorTraining, AFewKernelsMoveAGpuToItsOwnRates) {
  const ScratchFolder folder;
  const TensorWeights planted = plausible_weights();
  const TensorData data = read_text(folder, synthetic_rows(planted));
  const auto chosen = filtered(data.samples, [](const TensorSample& s) {
    return s.stack == 2 && s.seconds > 200e-6 && (s.shape.m == 1 || s.shape.m == 8192);
  });
  const TensorGpuEffect<double> start{0.3, 0.3, 0.3, 0.09};
  const TensorGpuEffect<double> own = calibrated_tensor_gpu(
      chosen, data.stacks[2].traits, planted.shared, start, planted.gpus[1].stacks[0].effect);
  EXPECT_NEAR(own.cap, 0.17, 0.03);
  EXPECT_NEAR(own.memory, 0.06, 0.06);
  EXPECT_EQ(own.cap_per_decade, 0.09);
}

TEST(TensorTraining, HeldOutRowsHaveNoSayInTheirOwnError) {
  const ScratchFolder folder;
  const TensorData data = read_text(folder, synthetic_rows(plausible_weights()));
  TensorData spoilt = data;
  for (TensorSample& sample : spoilt.samples)
    if (held_out(sample.shape, TensorHoldout::shapes)) sample.seconds *= 3;
  const TensorTraining a = train_tensor_gemm(data), b = train_tensor_gemm(spoilt);
  EXPECT_EQ(a.shapes.shared.values(), b.shapes.shared.values());
  EXPECT_NE(a.all.shared.values(), b.all.shared.values());
  EXPECT_LT(a.weights.gpus[0].long_spread, 0.03);
  EXPECT_GT(b.weights.gpus[0].long_spread, 0.5);  // log 3 / 1.28
}

TEST(TensorStudy, FindsNothingMissingWhereTheModelIsTrue) {
  const ScratchFolder folder;
  const TensorData data = read_text(folder, synthetic_rows(plausible_weights()));
  const TensorTraining training = train_tensor_gemm(data);
  const TensorStudy study = study_tensor_gemm(data, training);
  for (const auto& rows : {study.shapes, study.matrices}) {
    ASSERT_FALSE(rows.empty());
    for (const TensorErrorRow& row : rows) {
      EXPECT_LT(row.form.mean_pct, 3) << row.gpu << row.stack << row.regime;
      EXPECT_GT(row.roofline.mean_pct, row.form.mean_pct);
    }
  }
  ASSERT_EQ(study.coverage.size(), 4u);  // both GPUs as measured ones, then each from the other
  EXPECT_TRUE(study.coverage[0].measured);
  EXPECT_FALSE(study.coverage[2].measured);
  for (const TensorCoverage& coverage : study.coverage) EXPECT_GT(coverage.n, 50);
  EXPECT_GT(study.coverage[2].inside_pct, 80);  // a spread of 0.15 and more, an error below 0.1
  EXPECT_GT(study.coverage[3].inside_pct, 80);
  EXPECT_GT(study.coverage[2].mean_half_width, study.coverage[1].mean_half_width);
  ASSERT_GE(study.transfers.size(), 6u);
  EXPECT_EQ(study.transfers.front().source, "A100-SXM4-80GB");
  EXPECT_EQ(study.transfers.back().target, "A100-SXM4-80GB");
}

TEST(TensorSums, AreOffByTheMeanOfTheirKernels) {
  const ScratchFolder folder;
  TensorData data = read_text(folder, synthetic_rows(plausible_weights()));
  const TensorFit fit = fit_tensor_gemm(data, data.samples);
  for (const TensorSumError& sum : sums_of_eight(data, fit)) {
    EXPECT_GE(sum.sums, 2) << sum.gpu;
    EXPECT_LT(sum.mean_pct, 1) << sum.gpu;
  }
  // Twice the measured time: every kernel, hence every sum, is predicted at half.
  for (TensorSample& sample : data.samples) sample.seconds *= 2;
  for (const TensorSumError& sum : sums_of_eight(data, fit)) {
    EXPECT_NEAR(sum.mean_pct, 50, 1) << sum.gpu;
    EXPECT_NEAR(sum.p90_pct, 50, 1) << sum.gpu;
  }
}

/// Products of 4 to 200 ms whose rate falls by `per_decade` with duration.
std::string long_rows(const TensorWeights& weights, double per_decade) {
  TensorGpuWeights gpu = weights.gpus[1];
  gpu.effect.cap_per_decade = per_decade;
  const TensorStackWeights& stack = gpu.stacks[0];
  std::string text = kHeader;
  for (const int m : {2048, 4096, 8192, 16384, 32768})
    for (const int n : {8192, 12288, 32768, 65536})
      for (const int k : {16384, 28672, 57344}) {
        const TensorShape s = tensor_shape(half_product(m, n, k));
        const double seconds =
            tensor_gemm_seconds(s, tensor_traits(tensor_gpu(gpu.gpu), stack.precision),
                                weights.shared, gpu.effect, stack.effect);
        text += line(gpu.gpu, stack.precision, s, seconds, stack.name);
      }
  return text;
}

TEST(TensorLoad, IsRightOfALibraryThatFeelsTheLimitAlone) {
  const ScratchFolder folder;
  const TensorWeights weights = plausible_weights();
  const auto load_of = [&](double per_decade) {
    const TensorData data = read_text(folder, long_rows(weights, per_decade));
    return products_under_load(data, weights).at(0);
  };
  const TensorLoad limited = load_of(0.09), free = load_of(0);
  EXPECT_EQ(limited.calls[0].n + limited.calls[1].n + limited.calls[2].n, 59);  // one takes 0.8 ms
  // Weights and library agree on calls of 0.1 s, about the median of the longest.
  EXPECT_NEAR(limited.calls[2].error_pct, 0, 2);
  // Without the loss of two decades a call is told e^(2 * 0.09) = 1.20 of its time; the tiles'
  // time, which is added to either, leaves 1.17.
  EXPECT_NEAR(free.calls[2].error_pct, 18, 2);
  EXPECT_GT(free.calls[2].rate, 1.1 * limited.calls[2].rate);
  // Calls of 1 to 10 ms have lost less than the step is told: e^(0.09 * (2 - 0.6)) = 1.13.
  EXPECT_GT(limited.calls[0].error_pct, 5);
}

TEST(TensorTraining, TwiceTheSameDataGivesTheSameBytes) {
  const ScratchFolder folder;
  const TensorData data = read_text(folder, synthetic_rows(plausible_weights()));
  const auto bytes = [&] { return bytes_of(train_tensor_gemm(data).weights, folder); };
  EXPECT_TRUE(bytes() == bytes());
}

TEST(TensorTraining, ShippedWeightsAreWhatTheMeasurementsGive) {
  const std::filesystem::path file = measurements_folder() / "kernels" / "tensor_core.csv";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no measurements at " << file << "; set TESSERA_MEASUREMENTS";
  const ScratchFolder folder;
  const TensorData data = read_tensor_rows(file, tensor_gpu);
  EXPECT_TRUE(bytes_of(train_tensor_gemm(data).weights, folder) ==
              bytes_of(*load_weights(committed_weights()).tensor_gemm, folder));
}

}  // namespace
}  // namespace tessera
