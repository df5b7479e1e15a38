#include "predictor/tensor/tensor_gemm_model.h"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "lab/fit/dual.h"
#include "lab/fit/tensor/tensor_fit.h"
#include "tests/predictor/tensor/half_test_data.h"

namespace tessera {
namespace {

TensorTraits a100() {
  return tensor_traits(tensor_gpu("A100-SXM4-80GB"), Precision::bf16);
}

TensorShape shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  return tensor_shape(half_product(m, n, k));
}

double seconds(const TensorShape& s) {
  const TensorWeights weights = plausible_weights();
  return tensor_gemm_seconds(s, a100(), weights.shared, weights.gpus[0].effect,
                             weights.gpus[0].stacks[0].effect);
}

TEST(TensorTiles, BlocksCoverTheOutput) {
  // 2000 rows need 16 tiles of 128, 4097 columns 17 of 256; three products.
  TensorShape s = shape(2000, 4097, 64);
  s.batch = 3;
  EXPECT_EQ(tensor_blocks(s, {128, 256}), 3 * 16 * 17);
}

TEST(TensorTiles, WholeWavesTakeTheTimeOfFullOnes) {
  // 2048 x 4096 in tiles of 128 x 256: 256 blocks on 108 SMs are 2.37 waves, run as 3. Each takes
  // 2 * 128 * 256 FLOP per k and SM at 312e12 / 108 FLOP/s and e^0.01, over 1000 + 200 k.
  const TensorShape s = shape(2048, 4096, 1000);
  const double wave = 2.0 * 128 * 256 * 108 / 312e12 * std::exp(0.01) * 1200;
  const TensorParameters<double> p = plausible_parameters();
  const TensorTileChoice whole = tensor_tile_choice(s, a100(), p, 1, 0, 1);
  EXPECT_NEAR(whole.waves, 256 / 108.0, 1e-12);
  EXPECT_NEAR(whole.seconds, 3 * wave, 1e-12 * wave);
  EXPECT_NEAR(tensor_tile_choice(s, a100(), p, 0, 0, 1).seconds, 256 / 108.0 * wave, 1e-9 * wave);
}

TEST(TensorTiles, ASplitPaysForItsPartialSums) {
  // One block of 256 rows and 128 columns; 4 slices of 4096 k each still fit in one wave.
  const TensorShape s = shape(256, 128, 16384);
  const TensorParameters<double> p = plausible_parameters();
  const double per_k = 2.0 * 256 * 128 * 108 / 312e12 * std::exp(0.02);
  const double sums = 2.5e-6 + 4.0 * 4 * 256 * 128 / 2039e9;
  EXPECT_NEAR(tensor_tile_choice(s, a100(), p, 0.8, 1, 4).seconds, (4096 + 200) * per_k + sums,
              1e-12);
  EXPECT_GT(best_tensor_tile(s, a100(), p, 0.8).split, 1);
}

TEST(TensorTiles, SlicesAreNeverShortNorMany) {
  const TensorShape s = shape(128, 128, 1024);
  EXPECT_TRUE(tensor_split_possible(s, 0.1, 8));    // 128 in k each
  EXPECT_FALSE(tensor_split_possible(s, 0.1, 16));  // 64
  EXPECT_TRUE(tensor_split_possible(s, 2, 2));      // 4 waves
  EXPECT_FALSE(tensor_split_possible(s, 2.1, 2));
  EXPECT_TRUE(tensor_split_possible(s, 50, 1));
}

TEST(TensorTiles, NoneBeatsThePeak) {
  const TensorParameters<double> p = plausible_parameters();
  for (const TensorShape& s : {shape(1, 32, 32), shape(777, 1000, 130), shape(8192, 8192, 8192)})
    for (std::size_t tile = 0; tile < kTensorTiles.size(); ++tile)
      for (const int split : kTensorSplits)
        for (const double quantisation : {0.0, 0.5, 1.0})
          EXPECT_GT(tensor_tile_choice(s, a100(), p, quantisation, tile, split).seconds,
                    s.flops() / a100().flops);
}

TEST(TensorTiles, TheSoftMinimumLiesJustBelowTheBest) {
  // At most log(options) / sharpness below: 15 tiles with 7 splits each.
  const TensorParameters<double> p = plausible_parameters();
  for (const TensorShape& s : {shape(1, 32, 32), shape(777, 1000, 13000), shape(30000, 8192, 64)}) {
    const double soft = tensor_tile_seconds(s, a100(), p, 0.8);
    const double best = best_tensor_tile(s, a100(), p, 0.8).seconds;
    EXPECT_LE(soft, best);
    EXPECT_GE(soft, best * std::exp(-std::log(15 * 7) / kTensorTileSharpness));
  }
}

TEST(TensorGemm, MoreRowsOrColumnsNeverTakeLess) {
  double rows = 0, columns = 0;
  for (std::int64_t size = 8; size <= 6000; size += 8) {
    const double more_rows = seconds(shape(size, 4096, 2048));
    const double more_columns = seconds(shape(700, size, 9000));
    EXPECT_GE(more_rows, rows) << size;
    EXPECT_GE(more_columns, columns) << size;
    rows = more_rows;
    columns = more_columns;
  }
}

TEST(TensorGemm, OneRowBeyondWholeTilesCostsAWave) {
  // 108 blocks of 256 x 128 are one wave of the fastest tiles; 16 rows more are 27 blocks more.
  const double full = seconds(shape(1024, 3456, 4096));
  EXPECT_GT(seconds(shape(1040, 3456, 4096)), 1.2 * full);
  EXPECT_LT(seconds(shape(1024, 3456 - 128, 4096)), 1.01 * full);
}

TEST(TensorGemm, LongCallsLoseRateToPower) {
  // 0.3 per decade of the ideal time beyond 1 ms, on top of 0.11 of the GPU and -0.05 of the
  // library; tiles alone would take e^0.05 to e^0.2 of the ideal.
  const TensorWeights weights = plausible_weights();
  const TensorGpuEffect<double> limited{0.10, 0.19, 0.11, 0.3};
  for (const std::int64_t m : {65536, 1048576}) {
    const TensorShape s = shape(m, 16384, 16384);
    const double ideal = s.flops() / 312e12;
    const double loss = 0.11 - 0.05 + 0.3 * std::log10(1 + ideal / 1e-3);
    EXPECT_GT(loss, 0.5);
    const double expected = ideal * std::exp(loss);
    EXPECT_NEAR(
        tensor_gemm_seconds(s, a100(), weights.shared, limited, weights.gpus[0].stacks[0].effect),
        expected, 0.01 * expected);
  }
}

TEST(TensorGemm, OneRowIsBoundByTheWeights) {
  // 2 * 16384 * 16384 bytes at 2039 GB/s are 263 us; e^0.20 and the L2 term make it longer.
  const TensorShape s = shape(1, 16384, 16384);
  const double transfer = s.bytes / 2039e9;
  EXPECT_GT(seconds(s), transfer * std::exp(0.20));
  EXPECT_LT(seconds(s), transfer * 1.5);
}

TEST(TensorTraits, NeedTensorCores) {
  EXPECT_THROW(tensor_traits(tensor_gpu("P100-PCIe-16GB"), Precision::fp16), InputError);
  EXPECT_THROW(tensor_traits(tensor_gpu("V100-PCIe-32GB"), Precision::bf16), InputError);
  EXPECT_EQ(tensor_traits(tensor_gpu("V100-PCIe-32GB"), Precision::fp16).flops, 112e12);
}

TEST(TensorGradients, EqualFiniteDifferences) {
  constexpr int kCount = TensorLayoutOfParameters::kCount;
  constexpr double kStep = 1e-6;
  std::array<double, kCount> x{};
  for (int i = 0; i < kCount; ++i) x[i] = 0.3 * std::sin(1.7 * i + 0.4);
  x[0] = 5;  // prologue of 150 in k
  const std::vector<TensorSample> samples{
      {.shape = shape(1000, 3000, 1500), .seconds = 1e-4},    // several waves
      {.shape = shape(60, 96, 9000), .seconds = 1e-5},        // split contraction
      {.shape = shape(1, 4096, 4096), .seconds = 2e-5},       // memory, within L2
      {.shape = shape(8192, 16384, 8192), .seconds = 1e-2}};  // power limit
  for (const TensorSample& sample : samples) {
    const auto residual = [&]<class T>(const std::array<T, kCount>& p) {
      return tensor_residual<T>(sample, a100(), std::span<const T>(p));
    };
    std::array<Dual<kCount>, kCount> duals;
    for (int i = 0; i < kCount; ++i) duals[i] = Dual<kCount>::variable(x[i], i);
    const Dual<kCount> exact = residual(duals);
    EXPECT_DOUBLE_EQ(exact.value, residual(x));
    for (int i = 0; i < kCount; ++i) {
      std::array<double, kCount> up = x, down = x;
      up[i] += kStep;
      down[i] -= kStep;
      EXPECT_NEAR(exact.derivatives(i), (residual(up) - residual(down)) / (2 * kStep), 1e-6)
          << "parameter " << i << ", m " << sample.shape.m;
    }
  }
}

}  // namespace
}  // namespace tessera
