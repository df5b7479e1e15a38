#include "predictor/kernel_story.h"

#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "predictor/tessera_predictor.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"
#include "tests/predictor/test_kernels.h"
#include "workloads/program/convolution.h"

namespace tessera {
namespace {

constexpr const char* kGpus[] = {"P4", "V100-PCIe-32GB", "T4", "A100-PCIe-40GB",
                                 "L4", "H100-SXM5-80GB"};

const PredictorWeights& weights() {
  static const PredictorWeights loaded = load_weights(committed_weights());
  return loaded;
}

class RandomKernels {
 public:
  explicit RandomKernels(std::uint64_t seed) : random_(seed) {}

  Kernel next() {
    const std::uint64_t choice = random_() % 6;
    if (choice < 2) return product(choice == 0);
    return choice == 2 ? convolution() : rows();
  }

 private:
  std::int64_t up_to(int octaves) {
    const std::int64_t octave = std::int64_t{1} << (random_() % octaves);
    return octave + static_cast<std::int64_t>(random_() % octave);
  }
  Kernel product(bool linear) {
    const std::int64_t m = up_to(14), n = up_to(14), k = up_to(14);
    Kernel kernel = linear ? linear_kernel(m, n, k) : batched_kernel(up_to(8), m, n, k);
    kernel.layout = static_cast<GemmLayout>(random_() % 3);
    return kernel;
  }
  Kernel convolution() {
    const auto window = static_cast<std::int32_t>(1 + 2 * (random_() % 3));
    const std::int64_t groups = random_() % 3 == 0 ? up_to(6) : 1;
    return convolution_kernel({.batch = up_to(6),
                               .in_channels = groups * up_to(10),
                               .out_channels = groups * up_to(10),
                               .height = window + up_to(7),
                               .width = window + up_to(7),
                               .window = window,
                               .stride = static_cast<std::int32_t>(1 + random_() % 2),
                               .padding = window / 2,
                               .groups = groups},
                              static_cast<ConvolutionPass>(random_() % 3));
  }
  Kernel rows() {
    constexpr KernelKind kKinds[] = {
        KernelKind::elementwise, KernelKind::copy,       KernelKind::fill,
        KernelKind::softmax,     KernelKind::layer_norm, KernelKind::reduction,
        KernelKind::gather,      KernelKind::scatter,    KernelKind::multi_tensor};
    Kernel kernel = row_kernel(kKinds[random_() % std::size(kKinds)], up_to(18), up_to(13));
    kernel.bytes_read *= static_cast<std::int64_t>(1 + random_() % 2);
    if (random_() % 4 == 0) {
      kernel.bytes_refetched = kernel.bytes_written;
      kernel.reuse_footprint = Bytes(up_to(30));
    }
    return kernel;
  }

  std::mt19937_64 random_;
};

/// Relative to `b`; the compiled model that predicts is held to the same (gemm_table_test.cpp).
void expect_near(double a, double b) {
  EXPECT_NEAR(a, b, 2e-7 * std::abs(b));
}

void expect_tells_the_prediction(const KernelStory& story, const KernelPrediction& prediction) {
  const double busy = std::max(story.joined.value(), story.bound.value());
  expect_near(busy + story.queue_floor.value(), prediction.duration.value());
  expect_near(story.bound / prediction.duration, prediction.utilization);
  EXPECT_EQ(story.prediction.duration, prediction.duration);
  if (story.product) expect_near(story.product->compute_seconds(), prediction.compute_time.value());
  if (story.traffic) expect_near(story.traffic->seconds, prediction.memory_time.value());
}

TEST(KernelStory, ItsTermsGiveThePredictionOfRandomKernels) {
  for (const char* id : kGpus) {
    const GpuSpec gpu = test_gpu(id);
    const TesseraPredictor predictor(gpu, weights());
    RandomKernels kernels(7);
    for (int i = 0; i < 500; ++i) {
      const Kernel kernel = kernels.next();
      const KernelStory story = kernel_story(kernel, gpu, weights());
      expect_tells_the_prediction(story, predictor.predict(kernel));
      EXPECT_EQ(story.launch_gap, predictor.isolated_launch_overhead(kernel));
      if (HasFailure()) FAIL() << id << ", kernel " << i;
    }
  }
}

TEST(KernelStory, ItsTermsGiveThePredictionWhereNoConvolutionWasTimed) {
  PredictorWeights without = weights();
  without.convolution.reset();
  const Kernel kernel = convolution_kernel({.batch = 8,
                                            .in_channels = 64,
                                            .out_channels = 96,
                                            .height = 30,
                                            .width = 30,
                                            .window = 3,
                                            .padding = 1});
  const GpuSpec gpu = test_gpu("T4");
  const KernelStory story = kernel_story(kernel, gpu, without);
  expect_tells_the_prediction(story, TesseraPredictor(gpu, without).predict(kernel));
  EXPECT_FALSE(story.convolution);
}

TEST(KernelStory, SharesOfCandidatesAddUpToOneAndFallWithTime) {
  RandomKernels kernels(8);
  const GpuSpec gpu = test_gpu("V100-PCIe-32GB");
  for (int i = 0; i < 300; ++i) {
    const KernelStory story = kernel_story(kernels.next(), gpu, weights());
    if (!story.product) continue;
    double sum = 0, previous = 1;
    for (const TileCandidate& c : story.product->candidates) {
      EXPECT_LE(c.share, previous);
      EXPECT_GE(c.relative, 1);
      EXPECT_GE(c.charged_waves, c.waves);
      EXPECT_GT(c.sm_utilization, 0);
      EXPECT_LE(c.sm_utilization, 1);
      previous = c.share;
      sum += c.share;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_LE(story.product->tiles, story.product->candidates.front().seconds);
  }
}

const TileCandidate& unsplit(const KernelStory& story, int m, int n) {
  for (const TileCandidate& c : story.product->candidates)
    if (c.tile.m == m && c.tile.n == n && c.split == 1) return c;
  throw std::out_of_range("no such tile");
}

TEST(KernelStory, CountsBlocksAndWavesOfALargeLinearLayer) {
  const KernelStory story =
      kernel_story(linear_kernel(8192, 4096, 4096), test_gpu("H100-SXM5-80GB"), weights());
  const TileCandidate& tile = unsplit(story, 128, 128);
  EXPECT_EQ(tile.blocks, 2048);           // 8192 / 128 = 64 rows of 4096 / 128 = 32 tiles
  EXPECT_NEAR(tile.waves, 15.515, 5e-4);  // on 132 SMs
  EXPECT_EQ(tile.blocks_per_sm, 16);
  EXPECT_NEAR(tile.sm_utilization, 2048.0 / (132 * 16), 1e-12);
  // 16 waves at most: some share of the last one is charged.
  EXPECT_GT(tile.charged_waves, tile.waves);
  EXPECT_LE(tile.charged_waves, 16);
  // Its output fills the SMs, so that no contraction is split.
  EXPECT_EQ(story.product->candidates.size(), kGemmTiles.size());
}

TEST(KernelStory, TheFastestUnsplitTileIsThatOfThePrediction) {
  RandomKernels kernels(9);
  const GpuSpec gpu = test_gpu("A100-PCIe-40GB");
  int products = 0;
  for (int i = 0; i < 300; ++i) {
    const KernelStory story = kernel_story(kernels.next(), gpu, weights());
    if (!story.product || story.convolution) continue;
    const auto& candidates = story.product->candidates;
    const auto fastest = std::ranges::find(candidates, 1, &TileCandidate::split);
    const TileCandidate& likely = unsplit(story, story.prediction.tile_m, story.prediction.tile_n);
    EXPECT_NEAR(likely.seconds, fastest->seconds, 1e-12 * fastest->seconds);
    products += 1;
  }
  EXPECT_GT(products, 50);
}

TEST(KernelStory, NamesWhatLimitsAKernel) {
  const auto limit = [](const Kernel& kernel, const char* gpu) {
    return kernel_story(kernel, test_gpu(gpu), weights()).limit;
  };
  EXPECT_EQ(limit(linear_kernel(8192, 4096, 4096), "V100-PCIe-32GB"), KernelLimit::compute);
  EXPECT_EQ(limit(linear_kernel(8192, 4096, 4096), "P4"), KernelLimit::power);
  EXPECT_EQ(limit(row_kernel(KernelKind::elementwise, 65536, 4096), "V100-PCIe-32GB"),
            KernelLimit::memory);
  // 256 MiB of weights for 134 MFLOP: 0.3 ms at 900 GB/s, 0.01 ms at 14 TFLOP/s.
  EXPECT_EQ(limit(linear_kernel(1, 8192, 8192), "V100-PCIe-32GB"), KernelLimit::memory);
  EXPECT_EQ(limit(row_kernel(KernelKind::elementwise, 10, 10), "V100-PCIe-32GB"),
            KernelLimit::launch_floor);
}

TEST(KernelStory, TrafficMissesTheL2OnceItOutgrowsIt) {
  const GpuSpec gpu = test_gpu("V100-PCIe-32GB");  // L2 of 6 MB
  const KernelStory small =
      kernel_story(row_kernel(KernelKind::elementwise, 64, 1024), gpu, weights());
  const KernelStory large =
      kernel_story(row_kernel(KernelKind::elementwise, 1 << 18, 1024), gpu, weights());
  EXPECT_LT(small.traffic->l2_miss, 0.1);
  EXPECT_GT(large.traffic->l2_miss, 0.95);
  // 2 GiB at 900 GB/s take 2.386 ms at least.
  EXPECT_NEAR(large.traffic->achieved_share,
              2147483648.0 / 900e9 / large.prediction.duration.value(), 1e-9);
  EXPECT_LT(large.traffic->achieved_share, 1);
}

TEST(KernelStory, TellsOfTheOverlayInUse) {
  const GpuSpec gpu = test_gpu("V100-PCIe-32GB");
  GpuOverlay overlay = neutral_overlay(gpu, weights());
  overlay.gemm_slowdown += std::log(1.5);
  overlay.source = "own.csv";
  overlay.rows = 12;
  const PredictorWeights changed = with_overlay(weights(), overlay, gpu);
  const Kernel kernel = linear_kernel(8192, 4096, 4096);
  const KernelStory before = kernel_story(kernel, gpu, weights());
  const KernelStory after = kernel_story(kernel, gpu, changed);
  EXPECT_NEAR(after.product->gpu_slowdown / before.product->gpu_slowdown, 1.5, 1e-12);
  EXPECT_EQ(after.basis.provenance, EffectProvenance::calibrated);
  EXPECT_NE(after.basis.effect.find("12 kernels of own.csv"), std::string::npos);
}

Kernel in_bf16(Kernel kernel) {
  kernel.precision = Precision::bf16;
  kernel.bytes_read = kernel.bytes_read / 2;
  kernel.bytes_written = kernel.bytes_written / 2;
  return kernel;
}

TEST(KernelStory, ItsTermsGiveThePredictionOnTensorCores) {
  Kernel grouped = in_bf16(linear_kernel(600, 4096, 1024));
  grouped.kind = KernelKind::grouped_gemm;
  grouped.group_sizes = {200, 200, 200};
  for (const char* id : {"A100-SXM4-80GB", "H100-SXM5-80GB", "L4"}) {
    const GpuSpec gpu = half_test_gpu(id);
    const TesseraPredictor predictor(gpu, weights());
    for (const Kernel& kernel :
         {in_bf16(linear_kernel(8192, 4096, 1024)), in_bf16(linear_kernel(16, 4096, 16384)),
          in_bf16(batched_kernel(64, 512, 512, 64)), grouped,
          in_bf16(row_kernel(KernelKind::softmax, 8192, 2048))}) {
      const KernelStory story = kernel_story(kernel, gpu, weights());
      expect_tells_the_prediction(story, predictor.predict(kernel));
      EXPECT_EQ(story.notes, predictor.notes(kernel));
      if (!story.product) continue;
      double shares = 0;
      for (const TileCandidate& c : story.product->candidates) shares += c.share;
      EXPECT_NEAR(shares, 1, 1e-12);
      EXPECT_EQ(story.product->candidates.front().tile.m, story.prediction.tile_m);
    }
  }
}

TEST(KernelStory, TakesAttentionApart) {
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = Precision::bf16;
  kernel.attention = {.implementation = AttentionImplementation::flash2,
                      .direction = AttentionDirection::backward,
                      .causal = true,
                      .batch = 2,
                      .heads = 27,
                      .kv_heads = 27,
                      .seq_q = 1024,
                      .seq_kv = 1024,
                      .head_dim = 128};
  const GpuSpec a100 = half_test_gpu("A100-SXM4-80GB");
  const KernelStory story = kernel_story(kernel, a100, weights());
  ASSERT_TRUE(story.attention);
  const AttentionParts& parts = story.attention->parts;
  EXPECT_EQ(parts.shape.blocks, 2 * 27 * 8);                 // blocks of 128 queries
  EXPECT_DOUBLE_EQ(parts.forward.waves, 2 * 27 * 8 / 108.);  // 4 per SM
  EXPECT_NEAR(parts.factor, 3.1, 0.3);  // results/predictor/attention.md: 2.7 to 3.3
  EXPECT_DOUBLE_EQ(story.prediction.duration.value(), parts.factor * parts.forward.total);
  EXPECT_DOUBLE_EQ(story.prediction.duration.value(), (story.joined + story.queue_floor).value());
  EXPECT_EQ(story.effect.provenance, EffectProvenance::measured);
}

}  // namespace
}  // namespace tessera
