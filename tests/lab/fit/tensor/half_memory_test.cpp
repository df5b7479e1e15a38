#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/attention/attention_errors.h"
#include "lab/fit/dual.h"
#include "lab/fit/studies/half_memory_comparison.h"
#include "lab/fit/tensor/half_memory_fit.h"
#include "lab/fit/tensor/half_memory_predictor.h"
#include "predictor/tessera_predictor.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/weights_bytes.h"
#include "workloads/program/pointwise_flops.h"

namespace tessera {
namespace {

constexpr const char* kGpu = "A100-SXM4-80GB";
constexpr const char* kHeader = "gpu,op,rows,cols_in,cols_out,bytes_min,time_us,tp\n";
constexpr HalfMemoryGpu kA100{.bandwidth = 2039e9, .l2 = 40.0 * (1 << 20)};

/// Efficiency .8, launch 3 us, gain 1.9, centre log 2, slope 1.5, 500 bytes per row.
HalfMemoryVector planted() {
  return {std::log(.8), std::log(3.), std::log(.9), std::log(2.), std::log(1.5), std::log(500.)};
}

double seconds_of(double bytes, double rows, const HalfMemoryVector& x,
                  const HalfMemoryGpu& gpu = kA100) {
  return half_memory_seconds(
      {.bytes = bytes, .rows = rows}, gpu,
      HalfMemoryParameters<double>::from_unconstrained(std::span<const double>(x)));
}

/// Adds timed exactly as the form says, over rows and widths.
std::string synthetic_adds() {
  std::string text;
  for (std::int64_t rows = 16; rows <= 65536; rows *= 2)
    for (const std::int64_t cols : {512, 1024, 2048, 3072, 4096, 8192}) {
      const std::int64_t bytes = 6 * rows * cols;
      const double seconds =
          seconds_of(static_cast<double>(bytes), static_cast<double>(rows), planted());
      text.append(kGpu).append(",add");
      for (const std::int64_t value : {rows, cols, cols, bytes})
        text.append(",").append(std::to_string(value));
      text.append(",").append(std::to_string(1e6 * seconds)).append(",1\n");
    }
  return text;
}

HalfMemoryTable table_of(const ScratchFolder& folder, const std::string& rows) {
  return read_half_memory(folder.write("memory_bound_fp16.csv", kHeader + rows));
}

TEST(HalfMemoryModel, LargeTrafficRunsAtTheEfficiency) {
  // 10 GB: 250 times the L2, so all of it misses within 2e-3.
  const double time = seconds_of(1e10, 1, planted());
  EXPECT_NEAR(time, 3e-6 + 1e10 / (0.8 * 2039e9), 2e-3 * time);
}

TEST(HalfMemoryModel, TrafficInTheCacheIsFasterByTheGain) {
  // 40 MiB / e^12 = 257 bytes: the launch alone remains.
  EXPECT_NEAR(seconds_of(257, 0, planted()), 3e-6, 1e-9);
  HalfMemoryVector sharp = planted();
  sharp[kHalfSlope] = std::log(50.);
  const double mib = 1 << 20;
  EXPECT_NEAR(seconds_of(40 * mib, 0, sharp) - 3e-6, 40 * mib / (0.8 * 1.9 * 2039e9), 1e-9);
}

TEST(HalfMemoryModel, NarrowRowsAreSlower) {
  EXPECT_GT(seconds_of(1e8, 1e5, planted()), 1.3 * seconds_of(1e8, 1e3, planted()));
}

TEST(HalfMemoryModel, MoreTrafficNeverTakesLess) {
  double before = 0;
  for (double bytes = 1e3; bytes < 1e10; bytes *= 1.05) {
    const double now = seconds_of(bytes, 1, planted());
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(HalfMemoryModel, GradientsEqualFiniteDifferences) {
  constexpr int kN = kHalfMemoryParameters;
  constexpr double kStep = 1e-6;
  for (const double bytes : {1e6, 8e7, 1e9}) {
    const HalfMemoryShape shape{.bytes = bytes, .rows = 3e3};
    std::array<Dual<kN>, kN> duals;
    for (int i = 0; i < kN; ++i) duals[i] = Dual<kN>::variable(planted()[i], i);
    const Dual<kN> exact =
        half_memory_residual<Dual<kN>>(shape, 1e-4, kA100, std::span<const Dual<kN>>(duals));
    for (int i = 0; i < kN; ++i) {
      HalfMemoryVector up = planted(), down = planted();
      up[i] += kStep;
      down[i] -= kStep;
      EXPECT_NEAR(exact.derivatives(i),
                  (half_memory_residual<double>(shape, 1e-4, kA100, up) -
                   half_memory_residual<double>(shape, 1e-4, kA100, down)) /
                      (2 * kStep),
                  1e-6);
      EXPECT_NE(exact.derivatives(i), 0);
    }
  }
}

TEST(HalfMemoryTraining, FindsPlantedParameters) {
  const ScratchFolder folder;
  const HalfMemoryWeights weights =
      train_half_memory(table_of(folder, synthetic_adds()), half_test_gpu);
  const auto found =
      HalfMemoryParameters<double>::from_unconstrained(std::span<const double>(weights.classes[0]));
  EXPECT_NEAR(found.efficiency, 0.8, 0.01);
  EXPECT_NEAR(found.launch, 3e-6, 0.1e-6);
  EXPECT_NEAR(found.gain, 1.9, 0.1);
  EXPECT_NEAR(found.row_bytes, 500, 50);
  EXPECT_LT(weights.spread[0], 0.01);
}

TEST(HalfMemoryTraining, RoundTripsWithTheSameBytes) {
  const ScratchFolder folder;
  const HalfMemoryTable table = table_of(folder, synthetic_adds());
  const std::string bytes = bytes_of(train_half_memory(table, half_test_gpu), folder);
  EXPECT_TRUE(bytes == bytes_of(train_half_memory(table, half_test_gpu), folder));
  EXPECT_TRUE(bytes == bytes_of(*load_weights(folder.path() / "weights.pb").half_memory, folder));
  EXPECT_THROW(load_weights(folder.write("cut.pb", bytes.substr(0, 40))), InputError);
}

TEST(HalfMemoryReader, ReadsTwoAddsAsTwoCalls) {
  const ScratchFolder folder;
  const HalfMemoryTable table =
      table_of(folder, std::string(kGpu) + ",add_twice,10,64,64,7680,20,1\n");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].calls, 2);
  EXPECT_DOUBLE_EQ(table.rows[0].shape.bytes, 3840);  // 3 tensors of 10 x 64 halves
  EXPECT_TRUE(table.rows[0].held_out);
}

TEST(HalfMemoryReader, ASplitVocabularyReadsAndWritesARowPerId) {
  const ScratchFolder folder;
  const HalfMemoryTable table = table_of(folder, std::string(kGpu) + ",embedding,10,,64,,20,4\n");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(table.rows[0].shape.bytes, 2 * 10 * 64 * 2);
}

struct BadRow {
  const char* text;
  const char* problem;
};
class MalformedHalfMemory : public testing::TestWithParam<BadRow> {};

TEST_P(MalformedHalfMemory, NamesLineAndValue) {
  const ScratchFolder folder;
  try {
    table_of(folder, std::string(kGpu) + GetParam().text);
    FAIL() << "accepted " << GetParam().text;
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_THAT(error.problems()[0].where, testing::EndsWith(".csv:2"));
    EXPECT_THAT(error.problems()[0].what, testing::HasSubstr(GetParam().problem));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, MalformedHalfMemory,
                         testing::Values(BadRow{",sum,1,1,1,1,1,1\n", "op = 'sum'"},
                                         BadRow{",add,0,1,1,1,1,1\n", "rows = '0'"},
                                         BadRow{",add,1,1,1,,1,1\n", "bytes_min is empty"},
                                         BadRow{",add,1,1,1,6,-2,1\n", "time_us = '-2'"},
                                         BadRow{",add,1,1,1,6,2\n", "7 fields"}));

HalfMemoryWeights shipped() {
  return *load_weights(committed_weights()).half_memory;
}

TEST(HalfMemoryPredictor, AnAddReachesTheMeasuredBandwidth) {
  // 3 x 4096 x 8192 halves = 201 MB; measurements/kernels/README.md: 1.8 TB/s at 2048+ tokens.
  const HalfMemoryPredictor a100(half_test_gpu(kGpu), shipped());
  const HalfMemoryCall call{.op = HalfMemoryOp::add, .rows = 4096, .width = 8192};
  EXPECT_DOUBLE_EQ(half_memory_bytes(call), 3 * 2.0 * 4096 * 8192);
  EXPECT_NEAR(half_memory_bytes(call) / a100.duration(call).value(), 1.8e12, 0.15e12);
}

TEST(HalfMemoryPredictor, TheServersKernelsReachTheirMeasuredRates) {
  // measurements/kernels/README.md: rms_norm 0.65 and embedding 0.3 TB/s at 2048+ tokens.
  const HalfMemoryPredictor a100(half_test_gpu(kGpu), shipped());
  const auto rate = [&](HalfMemoryOp op) {
    const HalfMemoryCall call{.op = op, .rows = 8192, .width = 4096};
    return half_memory_bytes(call) / a100.duration(call).value();
  };
  EXPECT_NEAR(rate(HalfMemoryOp::rms_norm), 0.65e12, 0.1e12);
  EXPECT_NEAR(rate(HalfMemoryOp::embedding), 0.3e12, 0.05e12);
}

TEST(HalfMemoryPredictor, AnotherGpuCopiesTheShareOfItsBandwidth) {
  const HalfMemoryPredictor a100(half_test_gpu(kGpu), shipped()),
      h100(half_test_gpu("H100-SXM5-80GB"), shipped());
  const HalfMemoryCall call{.op = HalfMemoryOp::add, .rows = 1 << 17, .width = 8192};  // 6.4 GB
  EXPECT_NEAR(a100.duration(call) / h100.duration(call), 3350. / 2039, 0.02);
  EXPECT_DOUBLE_EQ(a100.predict(call).spread.gpu, 0.03);
  EXPECT_DOUBLE_EQ(h100.predict(call).spread.gpu, std::hypot(0.03, 0.15));
  EXPECT_THROW(h100.predict({.op = HalfMemoryOp::add, .rows = 0, .width = 1}), InputError);
}

TEST(CommittedHalfMemory, FollowsFromTheMeasurements) {
  const auto file = measurements_folder() / "kernels/memory_bound_fp16.csv";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no measurements in " << measurements_folder() << "; set TESSERA_MEASUREMENTS";
#ifndef NDEBUG
  GTEST_SKIP() << "optimised builds only";
#endif
  const ScratchFolder folder;
  EXPECT_TRUE(bytes_of(train_half_memory(read_half_memory(file), half_test_gpu), folder) ==
              bytes_of(shipped(), folder))
      << "train and commit anew: tessera train --model attention";
}

TEST(HalfMemoryComparison, ResidualAddsOf50UsAreWithin5PercentByTheFp32Model) {
  const auto file = measurements_folder() / "kernels/memory_bound_fp16.csv";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no measurements in " << measurements_folder() << "; set TESSERA_MEASUREMENTS";
  const PredictorWeights weights = load_weights(committed_weights());
  const TesseraPredictor predictor(half_test_gpu(kGpu), weights);
  const HalfMemoryTable table = read_half_memory(file);
  ErrorGroups errors;
  for (const HalfMemoryMeasurement& row : table.rows) {
    if (row.op != HalfMemoryOp::add || row.calls > 1 || row.seconds < 50e-6) continue;
    Kernel add;  // element-wise, three tensors
    add.precision = Precision::fp16;
    add.bytes_read = Bytes(static_cast<std::int64_t>(row.shape.bytes / 3 * 2));
    add.bytes_written = Bytes(static_cast<std::int64_t>(row.shape.bytes / 3));
    errors.add("add", predictor.duration(add).value(), row.seconds);
  }
  EXPECT_GT(errors.mean("add"), 0);
  EXPECT_LT(errors.mean("add"), 5);
  EXPECT_THAT(half_memory_comparison(table, half_test_gpu, weights), testing::HasSubstr("T4"));
}

/// Of PyTorch's own kernels in that file, as steps predict them: mean |error| of calls of 20 us and
/// longer. A100's GELUs chose the instructions per FLOP; nothing was fitted to A40.
double error_of_steps(const char* file, const GpuSpec& gpu, HalfMemoryOp op, double flops) {
  const PredictorWeights weights = load_weights(committed_weights());
  const TesseraPredictor predictor(gpu, weights);
  ErrorGroups errors;
  for (const HalfMemoryMeasurement& row : read_half_memory(measurements_folder() / file).rows) {
    if (row.op != op || row.calls > 1 || row.seconds < 20e-6) continue;
    Kernel kernel;
    kernel.precision = Precision::fp16;
    kernel.rows = static_cast<std::int64_t>(row.shape.rows);
    kernel.cols = row.width;
    kernel.flops = Flops(flops * row.shape.rows * static_cast<double>(row.width));
    kernel.bytes_read = kernel.bytes_written =
        Bytes(static_cast<std::int64_t>(row.shape.bytes / 2));
    errors.add("all", predictor.duration(kernel).value(), row.seconds);
  }
  return errors.mean("all");
}

TEST(StepsOnShortElements, AddsGoByTheMemoryAndGelusByTheInstructions) {
  const char* const a100 = "kernels/memory_bound_fp16.csv";
  const char* const a40 = "kernels_2026/memory_bound_fp16_a40.csv";
  for (const char* file : {a100, a40})
    if (!std::filesystem::exists(measurements_folder() / file))
      GTEST_SKIP() << "no " << file << " in " << measurements_folder()
                   << "; set TESSERA_MEASUREMENTS";
  constexpr double kAdd = 1, kGelu = pointwise_flops::kGelu;
  EXPECT_LT(error_of_steps(a100, half_test_gpu(kGpu), HalfMemoryOp::add, kAdd), 7);
  EXPECT_LT(error_of_steps(a100, half_test_gpu(kGpu), HalfMemoryOp::gelu, kGelu),
            7);  // 23 by bytes
  EXPECT_LT(error_of_steps(a40, half_test_gpu("A40"), HalfMemoryOp::add, kAdd), 7);
  EXPECT_LT(error_of_steps(a40, half_test_gpu("A40"), HalfMemoryOp::gelu, kGelu), 7);
}

}  // namespace
}  // namespace tessera
