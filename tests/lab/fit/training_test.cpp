#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/least_absolute.h"
#include "lab/fit/train.h"
#include "predictor/kernel_predictor.h"
#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/weights_bytes.h"

namespace tessera {
namespace {

std::string two_gpus(double v100_linear_slowdown = 1.3) {
  return kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.3, v100_linear_slowdown) +
         synthetic_rows("A100-PCIe-40GB", 1.4, 1.4);
}

TrainingSet training_set(const ScratchFolder& folder, const std::string& text) {
  folder.write("fp32.csv", text);
  return read_training_set(folder.path(), test_gpu);
}

PredictorWeights train_on(const ScratchFolder& folder, const std::string& text,
                          const TrainOptions& options = {}) {
  const TrainingSet set = training_set(folder, text);
  return train(set, Folds(set.gpus, FoldDepth::one), options);
}

TEST(LeastAbsolute, FitsTheWeightedMedian) {
  // One constant fitted to values: |.| is least at the median, squares would be least at the mean.
  const std::vector<double> values{1, 1.1, 1.2, 5, 9};
  LeastAbsoluteProblem problem;
  problem.rows = values.size();
  problem.weights = {1, 1, 1, 1, 1};
  problem.start = Eigen::VectorXd::Constant(1, 3.0);
  problem.pull = Eigen::VectorXd::Constant(1, 1e-9);
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& x, bool, RowResidual& out) {
    out.value = x(0) - values[row];
    out.derivatives = {{0, 1.0}};
  };
  EXPECT_NEAR(fit_least_absolute(problem).parameters(0), 1.2, 0.02);
  problem.weights = {10, 1, 1, 1, 1};
  EXPECT_NEAR(fit_least_absolute(problem).parameters(0), 1.0, 0.02);
}

TEST(LeastAbsolute, RowsMayDependOnDifferentParameters) {
  // y = x0 + u x1 for every other row, y = x0 + u x2 for the rest, in runs of changing length.
  const Eigen::Vector3d truth(0.5, 2, -1);
  const auto slope_of = [](std::size_t row) { return row % 5 < 2 ? 1 : 2; };
  const auto place = [](std::size_t row) { return 0.1 * static_cast<double>(row); };
  LeastAbsoluteProblem problem;
  problem.rows = 30;
  problem.weights.assign(problem.rows, 1.0);
  problem.start = Eigen::VectorXd::Zero(3);
  problem.pull = Eigen::VectorXd::Constant(3, 1e-9);
  Eigen::VectorXd prepared;
  problem.prepare = [&](const Eigen::VectorXd& x) { prepared = x; };
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& x, bool, RowResidual& out) {
    EXPECT_EQ(prepared, x);
    const int slope = slope_of(row);
    out.value = x(0) - truth(0) + place(row) * (x(slope) - truth(slope));
    out.derivatives = {{slope, place(row)}, {0, 1.0}};
  };
  const Eigen::VectorXd fitted = fit_least_absolute(problem).parameters;
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(fitted(i), truth(i), 1e-4) << i;
}

TEST(Training, RecoversTheSlowdownOfSyntheticKernels) {
  const ScratchFolder folder;
  const PredictorWeights weights = train_on(folder, two_gpus());
  const auto v100 = make_predictor(PredictorForm::tessera, test_gpu("V100-PCIe-32GB"), weights);
  const GpuTraits traits = gpu_traits(test_gpu("V100-PCIe-32GB"));
  const Kernel product = linear_kernel(3000, 3100, 5000);
  EXPECT_NEAR(v100->duration(product).value(), 1.3 * roofline_seconds(product, traits),
              0.04 * 1.3 * roofline_seconds(product, traits));
  const Kernel row = row_kernel(KernelKind::elementwise, 5000, 1600);
  EXPECT_NEAR(v100->duration(row).value(), 1.3 * roofline_seconds(row, traits),
              0.08 * 1.3 * roofline_seconds(row, traits));
}

TEST(Training, TwiceTheSameDataGivesTheSameBytes) {
  const ScratchFolder folder;
  const std::string text = two_gpus();
  const std::string first = bytes_of(train_on(folder, text), folder);
  EXPECT_TRUE(first == bytes_of(train_on(folder, text), folder));
  // The seed reaches the nets.
  EXPECT_FALSE(first == bytes_of(train_on(folder, text, {.seed = 2}), folder));
}

TEST(Training, RowsOfTheTestSplitChangeNothingButTheHash) {
  const ScratchFolder folder;
  const std::string text = two_gpus();
  const std::string test_rows =
      product_row("A100-PCIe-40GB", "linear", linear_kernel(4096, 4096, 4096), 1, "test");
  PredictorWeights without = train_on(folder, text);
  PredictorWeights with = train_on(folder, text + test_rows);
  EXPECT_NE(with.data[0].fnv1a, without.data[0].fnv1a);
  EXPECT_EQ(with.data[0].rows, without.data[0].rows);
  with.data[0].fnv1a = without.data[0].fnv1a;
  EXPECT_TRUE(bytes_of(with, folder) == bytes_of(without, folder));
}

class HeldOut : public testing::TestWithParam<const char*> {};

TEST_P(HeldOut, APlantedRowIsRefused) {
  const ScratchFolder folder;
  const std::string planted =
      product_row(GetParam(), "linear", linear_kernel(512, 512, 512), 100, "train");
  try {
    train_on(folder, two_gpus() + planted);
    FAIL() << "trained on " << GetParam();
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].what, std::string("holds rows of ") + GetParam());
    EXPECT_NE(error.problems()[0].hint.find("never trained on"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, HeldOut,
                         testing::Values("H100-SXM5-80GB", "H200-SXM5-141GB", "L4",
                                         "A100-SXM4-80GB"));

TEST(Training, LinearRowsTwiceAsSlowAsProductsAreLeftOut) {
  const ScratchFolder folder;
  EXPECT_EQ(training_set(folder, two_gpus(3.0)).anomalous_linear(),
            (std::vector<std::string>{"V100-PCIe-32GB"}));
  EXPECT_TRUE(training_set(folder, two_gpus(2.0)).anomalous_linear().empty());
}

TEST(Training, LeavesOutEveryGpuOnce) {
  const ScratchFolder folder;
  const PredictorWeights weights = train_on(folder, two_gpus());
  int linear_scores = 0;
  for (const LogoScore& score : weights.logo) {
    EXPECT_GT(score.n, 0);
    if (score.op != "linear") continue;
    ++linear_scores;
    if (score.form != "tessera") continue;
    EXPECT_LT(score.mean_abs_error_pct, 15) << score.gpu;
  }
  EXPECT_EQ(linear_scores, 2 * 5);  // GPUs x forms
}

TEST(Training, AFileWithoutTrainingRowsIsRefused) {
  const ScratchFolder folder;
  EXPECT_THROW(train_on(folder, kMeasurementHeader), InputError);
  EXPECT_THROW(read_training_set(folder.path() / "absent", test_gpu), InputError);
}

TEST(CommittedWeights, FollowFromTheMeasurements) {
#ifndef NDEBUG
  GTEST_SKIP() << "optimised builds only: retraining takes minutes without optimisation";
#endif
  if (!std::filesystem::exists(measurements_folder() / "kernels/fp32.csv"))
    GTEST_SKIP() << "no measurements in " << measurements_folder() << "; set TESSERA_MEASUREMENTS";
  const ScratchFolder folder;
  const PredictorWeights committed = load_weights(committed_weights());
  const TrainingSet set = read_training_set(measurements_folder(), test_gpu);
  PredictorWeights retrained =
      train(set, Folds(set.gpus, FoldDepth::none), {committed.seed, committed.rule});
  retrained.logo = committed.logo;
  retrained.spreads = committed.spreads;
  retrained.tensor_gemm = committed.tensor_gemm;
  retrained.attention = committed.attention;
  EXPECT_TRUE(bytes_of(retrained, folder) == read_file(committed_weights()))
      << "train and commit anew: tessera train";
}

}  // namespace
}  // namespace tessera
