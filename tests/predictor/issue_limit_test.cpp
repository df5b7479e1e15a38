#include "predictor/fp32/issue_limit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "predictor/tessera_predictor.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"

namespace tessera {
namespace {

constexpr std::int64_t kRows = 4096, kCols = 10240;
constexpr double kElements = 4096.0 * 10240;

Kernel pointwise(Precision precision, double flops_per_element) {
  Kernel kernel;
  kernel.precision = precision;
  kernel.rows = kRows;
  kernel.cols = kCols;
  kernel.flops = Flops(flops_per_element * kElements);
  kernel.bytes_read = kernel.bytes_written = Bytes(kRows * kCols * element_bytes(precision));
  return kernel;
}

Kernel strided(Precision precision) {
  Kernel kernel = pointwise(precision, 0);
  kernel.kind = KernelKind::copy;
  kernel.strided = true;
  return kernel;
}

/// 108 SMs that start four warps of 32 lanes at 1.41 GHz: 19.5e12 lanes a second.
GpuTraits a100() {
  return {.instructions = 108 * 128 * 1.41e9};
}

TEST(IssueLimit, AGeluOf15FlopsTakes54InstructionsAnElement) {
  // 8 + 3.1 x 15 = 54.5; 41.9 million elements in 117 us. Measured: 126 us, memory included
  // (kernels/memory_bound_fp16.csv, phi-2).
  EXPECT_NEAR(issue_seconds(pointwise(Precision::fp16, 15), a100()) * 1e6, 117.3, 0.1);
  EXPECT_NEAR(issue_seconds(strided(Precision::fp16), a100()) * 1e6, 172.2, 0.1);  // 80 of them
}

TEST(IssueLimit, WhatWasTimedInFp32ContainsIt) {
  EXPECT_EQ(issue_seconds(pointwise(Precision::fp32, 15), a100()), 0);
  EXPECT_EQ(with_issue_limit(3e-4, pointwise(Precision::fp32, 15), a100()), 3e-4);
  EXPECT_GT(issue_seconds(strided(Precision::fp32), a100()), 0);  // nobody timed a strided copy
}

TEST(IssueLimit, TheSlowerLimitDecidesAndBothAreKept) {
  const Kernel copy = strided(Precision::bf16);
  const double issued = issue_seconds(copy, a100());
  const auto with = [&](double moved) { return with_issue_limit(moved, copy, a100()) / issued; };
  EXPECT_NEAR(with(10 * issued), 10 * std::pow(1.0001, 0.25), 1e-9);
  EXPECT_NEAR(with(issued), std::pow(2, 0.25), 1e-9);
  EXPECT_NEAR(with(issued / 10), std::pow(1.0001, 0.25), 1e-9);
}

TEST(IssueLimit, MemoryThatIsFastBesideItsSmsGainsLessFromShortElements) {
  // Bytes per SM and clock: L4 2.5, H100 13. Halving the bytes halves the time where memory
  // decides alone.
  const PredictorWeights weights = load_weights(committed_weights());
  const auto gain = [&](const char* gpu) {
    const TesseraPredictor predictor(test_gpu(gpu), weights);
    return predictor.duration(strided(Precision::fp32)) /
           predictor.duration(strided(Precision::fp16));
  };
  EXPECT_GT(gain("L4"), 1.9);
  EXPECT_LT(gain("H100-SXM5-80GB"), 1.6);
}

}  // namespace
}  // namespace tessera
