#include <gtest/gtest.h>

#include "lab/fit/baselines/free_mlp.h"
#include "lab/fit/baselines/per_op_regression.h"
#include "lab/fit/seeded_descent.h"
#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"

namespace tessera {
namespace {

/// Training rows of a measurement file with the given text.
struct Rows {
  explicit Rows(const std::string& text)
      : file(read_measurements(folder.write("fp32.csv", text))),
        data(training_data(file, test_gpu)) {
    for (const GpuData& gpu : data) gpus.push_back(&gpu);
  }
  ScratchFolder folder;
  MeasurementFile file;
  std::vector<GpuData> data;
  std::vector<const GpuData*> gpus;
};

/// Times that follow a plane, of products whose arithmetic and traffic vary apart.
std::vector<RegressionSample> planted(const RegressionCoefficients& truth) {
  std::vector<RegressionSample> samples;
  for (int i = 1; i <= 5; ++i)
    for (int j = 1; j <= 5; ++j) {
      const double compute = 3e-5 * i * i, traffic = 2e-5 * j;
      samples.push_back({compute, traffic, truth.latency(compute, traffic)});
    }
  return samples;
}

TEST(RelativeRegression, RecoversPlantedCoefficients) {
  const RegressionCoefficients truth{.seconds = 30e-6, .per_compute = 1.4, .per_traffic = 1.7};
  const RegressionCoefficients fitted = fit_relative(planted(truth));
  EXPECT_NEAR(fitted.seconds, truth.seconds, 1e-12);
  EXPECT_NEAR(fitted.per_compute, truth.per_compute, 1e-9);
  EXPECT_NEAR(fitted.per_traffic, truth.per_traffic, 1e-9);
}

TEST(RelativeRegression, CountsErrorsInPercent) {
  // A constant fitted to 1 and 3: sum of (x / t - 1)^2 is least at
  // (1/1 + 1/3) / (1/1 + 1/9) = 1.2; plain squares would give 2.
  const std::vector<RegressionSample> samples{{0, 0, 1e-6}, {0, 0, 3e-6}};
  EXPECT_NEAR(fit_relative(samples).seconds, 1.2e-6, 1e-12);
}

TEST(RelativeRegression, ArithmeticInStepWithTrafficIsNoProblem) {
  std::vector<RegressionSample> samples;
  for (int i = 1; i <= 9; ++i) samples.push_back({1e-6 * i, 4e-6 * i, 10e-6 + 8e-6 * i});
  const RegressionCoefficients fitted = fit_relative(samples);
  EXPECT_NEAR(fitted.latency(5e-6, 20e-6), 50e-6, 1e-11);
  EXPECT_LT(std::abs(fitted.per_compute), 8);  // the shortest solution, no huge pair
}

TEST(PerOpRegression, PredictsAnUnseenGpuByItsPeaks) {
  const Rows rows(kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.3, 1.3) +
                  synthetic_rows("A100-PCIe-40GB", 1.3, 1.3));
  const PerOpRegression regression(rows.gpus);
  const GpuTraits t4 = gpu_traits(test_gpu("T4"));
  KernelMeasurement row{.op = MeasuredOp::add, .rows = 4000, .cols = 20000};
  // Three passes over 320 MB at 320 GB/s are 3 ms; the rows say 1.3 times that.
  EXPECT_NEAR(regression.seconds(row, t4), 3.9e-3, 0.2e-3);
}

TEST(FreeMlp, ExplainsMostOfWhatTheRooflineMisses) {
  const Rows rows(kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.3, 1.3) +
                  synthetic_rows("A100-PCIe-40GB", 1.4, 1.4));
  const FreeMlp mlp(rows.gpus, 1);
  double missed_by_mlp = 0, missed_by_roofline = 0;
  for (const GpuData& gpu : rows.data)
    for (const KernelMeasurement* row : gpu.rows) {
      const double roofline = roofline_seconds(kernel_of(*row), gpu.traits);
      missed_by_mlp += std::abs(std::log(mlp.seconds(*row, gpu.traits) * 1e6 / row->latency_us));
      missed_by_roofline += std::abs(std::log(roofline * 1e6 / row->latency_us));
    }
  EXPECT_LT(missed_by_mlp, 0.5 * missed_by_roofline);
}

TEST(FreeMlp, SameSeedSameNet) {
  const Rows rows(kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.3, 1.3));
  const GpuData& gpu = rows.data[0];
  const KernelMeasurement& row = *gpu.rows.front();
  const double seconds = FreeMlp(rows.gpus, 1).seconds(row, gpu.traits);
  EXPECT_EQ(seconds, FreeMlp(rows.gpus, 1).seconds(row, gpu.traits));
  EXPECT_NE(seconds, FreeMlp(rows.gpus, 2).seconds(row, gpu.traits));
}

TEST(Descend, GoesThroughAllExamplesInEveryEpoch) {
  std::mt19937_64 random(1);
  std::vector<int> seen(10);
  std::vector<double> rates;
  descend(10, {.epochs = 3, .batch = 4, .rate = 1}, random, [&](auto batch, double rate) {
    for (const std::size_t i : batch) ++seen[i];
    rates.push_back(rate);
  });
  EXPECT_EQ(seen, std::vector<int>(10, 3));
  // Batches of 4, 4 and 2; half a cosine at 0, 1/3 and 2/3 of its way: 1, 3/4, 1/4.
  ASSERT_EQ(rates.size(), 9u);
  EXPECT_NEAR(rates[0], 1, 1e-12);
  EXPECT_NEAR(rates[3], 0.75, 1e-12);
  EXPECT_NEAR(rates[8], 0.25, 1e-12);
}

}  // namespace
}  // namespace tessera
