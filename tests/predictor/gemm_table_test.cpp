#include "predictor/fp32/gemm_table.h"

#include <gtest/gtest.h>

#include "predictor/fp32/memory_table.h"
#include "predictor/fp32/softplus_table.h"
#include "tests/predictor/gemm_table_comparison.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"

namespace tessera {
namespace {

constexpr const char* kGpus[] = {"P4", "V100-PCIe-32GB", "T4", "A100-PCIe-40GB", "A40",
                                 "L4", "H100-SXM5-80GB"};

const PredictorWeights& weights() {
  static const PredictorWeights loaded = load_weights(committed_weights());
  return loaded;
}

/// Products whose blocks fill the SMs of `gpu` to the last one, or leave one over, in every split.
std::vector<GemmShape> shapes_at_wave_boundaries(const GpuSpec& gpu) {
  std::vector<GemmShape> shapes;
  for (const int split : kSplits)
    for (const int waves : {1, 2, 7})
      for (const int over : {-1, 0, 1})
        for (const std::int64_t extent : {32, 64, 128}) {
          const std::int64_t blocks = std::max(1, waves * gpu.sm_count / split + over);
          shapes.push_back(gemm_shape(linear_kernel(extent * blocks, extent, 4096)));
          shapes.push_back(gemm_shape(batched_kernel(blocks, extent, extent, 512)));
        }
  return shapes;
}

TEST(GemmTable, EqualsTheTrainedFormulasForRandomShapes) {
  const std::vector<GemmShape> shapes = random_gemm_shapes(3000, 1);
  for (const char* id : kGpus)
    EXPECT_LT(worst_gemm_table_difference(test_gpu(id), weights(), shapes), 1e-7) << id;
}

TEST(GemmTable, EqualsTheTrainedFormulasAtWaveBoundaries) {
  for (const char* id : kGpus) {
    const auto shapes = shapes_at_wave_boundaries(test_gpu(id));
    EXPECT_LT(worst_gemm_table_difference(test_gpu(id), weights(), shapes), 1e-7) << id;
  }
}

TEST(GemmTable, TakesTheTileThatIsFastestUnsplit) {
  const GpuTraits gpu = gpu_traits(test_gpu("V100-PCIe-32GB"));
  const GemmWeights& gemm = weights().gemm;
  const GemmTable table(gemm, gpu, 0, 0);
  for (const GemmShape& shape : random_gemm_shapes(500, 2)) {
    const KernelPrediction prediction = table.predict(shape);
    double chosen = 0, fastest = HUGE_VAL;
    for (std::size_t tile = 0; tile < kGemmTiles.size(); ++tile) {
      const double seconds = tile_seconds(shape, gpu, gemm.shared, gemm.menu(gpu), tile, 1);
      fastest = std::min(fastest, seconds);
      if (kGemmTiles[tile].m == prediction.tile_m && kGemmTiles[tile].n == prediction.tile_n)
        chosen = seconds;
    }
    EXPECT_NEAR(chosen, fastest, 1e-12 * fastest);
    EXPECT_EQ(prediction.waves,
              wave_count(shape, {prediction.tile_m, prediction.tile_n}, 1, gpu.sms));
  }
}

TEST(MemoryTable, EqualsTheTrainedFormulas) {
  for (const char* id : kGpus) {
    const GpuTraits gpu = gpu_traits(test_gpu(id));
    const std::array<double, kMemoryClasses> slowdown{0.1, 0.3, 0.2};
    const MemoryTable table(weights().memory, gpu, slowdown);
    for (const KernelKind kind :
         {KernelKind::elementwise, KernelKind::softmax, KernelKind::layer_norm})
      for (std::int64_t rows = 1; rows < 1 << 20; rows *= 3)
        for (const std::int64_t cols : {1, 100, 1024, 1025, 50257})
          for (const int passes : {1, 2}) {
            Kernel kernel = row_kernel(kind, rows, cols);
            kernel.bytes_read *= passes;
            const MemoryShape shape = memory_shape(kernel);
            const double seconds = memory_seconds<double>(
                shape, gpu, weights().memory,
                {slowdown[static_cast<std::size_t>(shape.memory_class)], slowdown[0]});
            EXPECT_NEAR(table.seconds(shape), seconds, 1e-12 * seconds);
          }
  }
}

TEST(SoftplusTable, IsWithinTenBillionthsOfTheFunction) {
  const SoftplusTable& softplus_table = SoftplusTable::shared();
  for (double x = -60; x < 60; x += 0.0137)
    EXPECT_NEAR(softplus_table(x), std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))), 1e-8);
  EXPECT_EQ(softplus_table(-HUGE_VAL), 0.0);
  EXPECT_EQ(softplus_table(1e300), 1e300);
}

}  // namespace
}  // namespace tessera
