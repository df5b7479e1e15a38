#include "lab/fit/fp32/conv_training.h"

#include <gtest/gtest.h>

#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "lab/fit/fp32/conv_fit.h"
#include "lab/fit/train.h"
#include "lab/predict/evaluation.h"
#include "tests/predictor/synthetic_convolutions.h"
#include "tests/predictor/synthetic_measurements.h"

namespace tessera {
namespace {

std::string products() {
  return kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.3, 1.3) +
         synthetic_rows("P100-PCIe-16GB", 1.4, 1.4) + synthetic_rows("A100-PCIe-40GB", 1.4, 1.4);
}

std::string convolutions() {
  return kConvolutionHeader + synthetic_convolutions("V100-PCIe-32GB", 0.4) +
         synthetic_convolutions("P100-PCIe-16GB", 0.5);
}

PredictorWeights train_in(const ScratchFolder& folder, FoldDepth depth = FoldDepth::none) {
  const TrainingSet set = read_training_set(folder.path(), test_gpu);
  return train(set, Folds(set.gpus, depth), {.baselines = false});
}

PredictorWeights train_with(const ScratchFolder& folder, const std::string& rows,
                            FoldDepth depth = FoldDepth::none) {
  folder.write("fp32.csv", products());
  folder.write("fp32_conv.csv", rows);
  return train_in(folder, depth);
}

std::string problem_of(const std::string& rows) {
  const ScratchFolder folder;
  try {
    train_with(folder, rows);
  } catch (const InputError& error) {
    return error.problems().front().text();
  }
  return "";
}

TEST(ConvolutionTraining, RecoversPlantedParameters) {
  const ScratchFolder folder;
  const PredictorWeights weights = train_with(folder, convolutions());
  const ConvolutionParameters<double>& found = weights.convolution->shared;
  const ConvolutionParameters<double> planted = planted_parameters();
  EXPECT_NEAR(found.prologue, planted.prologue, 3);
  EXPECT_NEAR(found.implicit, planted.implicit, 0.05);
  EXPECT_NEAR(found.fused, planted.fused, 0.05);
  EXPECT_NEAR(found.transform, planted.transform, 0.1);
  EXPECT_NEAR(found.quantisation, planted.quantisation, 0.1);
  // GPUs in the order of the file: V100, P100, A100, the last without timed convolutions.
  const GpuEffect& v100 = weights.gpus[0].effect;
  const GpuEffect& p100 = weights.gpus[1].effect;
  EXPECT_NEAR(*v100.convolution_slowdown, 0.4, 0.03);
  EXPECT_NEAR(*p100.convolution_slowdown, 0.5, 0.03);
  EXPECT_FALSE(weights.gpus[2].effect.convolution_slowdown.has_value());
  EXPECT_NEAR(v100.floors.convolution, 70e-6, 3e-6);  // without what it rose by
  EXPECT_NEAR(weights.convolution->shift,
              (*v100.convolution_slowdown - v100.gemm_slowdown + *p100.convolution_slowdown -
               p100.gemm_slowdown) /
                  2,
              1e-12);
}

TEST(ConvolutionTraining, NamesTheFileAndCountsItsTrainingRows) {
  const ScratchFolder folder;
  const std::string test_row = "T4,conv2d,test,1,3,3,3,5,1,1,100\n";
  const PredictorWeights weights = train_with(folder, convolutions() + test_row);
  ASSERT_EQ(weights.data.size(), 2u);
  EXPECT_EQ(weights.data[0].file, "fp32.csv");
  EXPECT_EQ(weights.data[1].file, "fp32_conv.csv");
  EXPECT_EQ(weights.data[1].rows, 480);
  EXPECT_EQ(weights.data[1].fnv1a, fnv1a(convolutions() + test_row));
}

TEST(ConvolutionTraining, IsDeterministicAndSurvivesTheFile) {
  const ScratchFolder folder;
  const auto bytes = [&](const PredictorWeights& weights) {
    save_weights(weights, folder.path() / "weights.pb");
    return read_file(folder.path() / "weights.pb");
  };
  const std::string first = bytes(train_with(folder, convolutions()));
  EXPECT_TRUE(first == bytes(load_weights(folder.path() / "weights.pb")));
  EXPECT_TRUE(first == bytes(train_with(folder, convolutions())));
}

TEST(ConvolutionTraining, LeavesTheOtherParametersAlone) {
  const ScratchFolder folder;
  const PredictorWeights with = train_with(folder, convolutions());
  std::filesystem::remove(folder.path() / "fp32_conv.csv");
  const PredictorWeights without = train_in(folder);
  EXPECT_FALSE(without.convolution.has_value());
  EXPECT_EQ(without.data.size(), 1u);
  EXPECT_EQ(with.data[0].rows, without.data[0].rows);
  EXPECT_EQ(with.gpus[0].effect.gemm_slowdown, without.gpus[0].effect.gemm_slowdown);
  EXPECT_EQ(with.range.memory_bytes, without.range.memory_bytes);
}

TEST(ConvolutionTraining, RefusesHeldOutGpusAndThoseWithoutProducts) {
  const std::string held_out =
      problem_of(convolutions() + "H100-SXM5-80GB,conv2d,train,1,3,3,3,5,1,1,100\n");
  EXPECT_NE(held_out.find("fp32_conv.csv"), std::string::npos);
  EXPECT_NE(held_out.find("holds rows of H100-SXM5-80GB"), std::string::npos);
  EXPECT_NE(problem_of(convolutions() + "T4,conv2d,train,1,3,3,3,5,1,1,100\n")
                .find("holds rows of T4, fp32.csv has none"),
            std::string::npos);
}

TEST(ConvolutionTraining, LeavesOutEveryGpuOnce) {
  const ScratchFolder folder;
  const PredictorWeights weights = train_with(folder, convolutions(), FoldDepth::one);
  int scores = 0;
  for (const LogoScore& score : weights.logo) {
    if (score.op != "conv2d") continue;
    ++scores;
    EXPECT_EQ(score.n, 240);
    if (score.form == "tessera") {
      EXPECT_LT(score.mean_abs_error_pct, 25) << score.gpu;
    }
  }
  EXPECT_EQ(scores, 2 * 2);  // GPUs x forms
}

TEST(ConvolutionTraining, TimedConvolutionsAreScored) {
  const ScratchFolder folder;
  const PredictorWeights weights = train_with(folder, convolutions());
  const KernelScores scores =
      score_kernels(folder.path() / "fp32_conv.csv", weights, PredictorForm::tessera, test_gpu);
  ASSERT_EQ(scores.groups.size(), 2u);
  EXPECT_EQ(scores.groups[0].op, "conv2d");
  EXPECT_EQ(scores.groups[0].n, 240);
  EXPECT_LT(scores.groups[0].mean_abs_error_pct, 5);
}

TEST(ConvolutionTraining, SaysWhatItWasNeverTrainedOn) {
  const ScratchFolder folder;
  const PredictorWeights weights = train_with(folder, convolutions());
  const auto v100 = make_predictor(PredictorForm::tessera, test_gpu("V100-PCIe-32GB"), weights);
  EXPECT_FALSE(v100->predict(square_convolution(8, 64, 64, 28)).extrapolated);
  EXPECT_TRUE(v100->predict(square_convolution(8, 64, 64, 28, 1)).extrapolated);
  EXPECT_TRUE(v100->predict(square_convolution(8, 64, 64, 28, 3, 2)).extrapolated);
  EXPECT_TRUE(v100->predict(square_convolution(8, 64, 4096, 28)).extrapolated);
}

}  // namespace
}  // namespace tessera
