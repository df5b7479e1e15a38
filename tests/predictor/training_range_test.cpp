#include "predictor/weights/training_range.h"

#include <gtest/gtest.h>

#include "workloads/program/convolution.h"

namespace tessera {
namespace {

Kernel product(KernelKind kind, std::int64_t batch, std::int64_t m, std::int64_t n,
               std::int64_t k) {
  return {.kind = kind, .batch = batch, .m = m, .n = n, .k = k};
}

TEST(TrainingRange, CoversUpToTheLargestOfEachSize) {
  TrainingRange range;
  range.include(product(KernelKind::gemm, 1, 100, 20, 3000));
  range.include(product(KernelKind::gemm, 1, 10, 200, 30));
  EXPECT_FALSE(range.beyond(product(KernelKind::gemm, 1, 100, 200, 3000)));
  EXPECT_TRUE(range.beyond(product(KernelKind::gemm, 1, 101, 20, 30)));
  EXPECT_TRUE(range.beyond(product(KernelKind::gemm, 1, 100, 201, 30)));
  EXPECT_TRUE(range.beyond(product(KernelKind::gemm, 1, 100, 20, 3001)));
}

TEST(TrainingRange, NamesTheInputThatLiesFarthestBeyond) {
  TrainingRange range;
  range.include(product(KernelKind::gemm, 1, 100, 200, 300));
  const Extrapolation beyond = range.beyond(product(KernelKind::gemm, 1, 150, 400, 330));
  EXPECT_EQ(beyond.input, "n");
  EXPECT_DOUBLE_EQ(beyond.factor, 2);
  EXPECT_EQ(range.beyond(product(KernelKind::gemm, 1, 100, 200, 300)).input, "");
}

TEST(TrainingRange, KeepsLinearLayersAndBatchedProductsApart) {
  TrainingRange range;
  range.include(product(KernelKind::gemm, 1, 4096, 4096, 4096));
  EXPECT_TRUE(range.beyond(product(KernelKind::batched_gemm, 1, 64, 64, 64)));
}

TEST(TrainingRange, ConvolutionsAreComparedByWindowStridePassAndSizes) {
  const auto kernel = [](std::int64_t channels, std::int32_t window, std::int32_t stride) {
    return convolution_kernel({.batch = 2,
                               .in_channels = channels,
                               .out_channels = 64,
                               .height = 32,
                               .width = 32,
                               .window = window,
                               .stride = stride,
                               .padding = window / 2});
  };
  TrainingRange range;
  EXPECT_TRUE(range.beyond(kernel(64, 3, 1)));
  range.include(kernel(64, 3, 1));
  EXPECT_FALSE(range.beyond(kernel(64, 3, 1)));
  EXPECT_FALSE(range.beyond(kernel(32, 3, 1)));
  EXPECT_TRUE(range.beyond(kernel(65, 3, 1)));
  EXPECT_TRUE(range.beyond(kernel(32, 1, 1)));
  EXPECT_TRUE(range.beyond(kernel(32, 3, 2)));
  Kernel gradient = kernel(64, 3, 1);
  gradient.layout = GemmLayout::nt;
  EXPECT_TRUE(range.beyond(gradient));
  Kernel groups = kernel(64, 3, 1);
  groups.batch = 4;
  EXPECT_EQ(range.beyond(groups).input, "groups");
  EXPECT_DOUBLE_EQ(range.beyond(groups).factor, 4);
  range.include(kernel(64, 1, 2));
  EXPECT_FALSE(range.beyond(kernel(7, 1, 1)));
}

TEST(TrainingRange, MemoryBoundKernelsAreComparedByTraffic) {
  TrainingRange range;
  range.include({.kind = KernelKind::softmax, .bytes_read = 4_MiB, .bytes_written = 4_MiB});
  EXPECT_FALSE(range.beyond({.kind = KernelKind::fill, .bytes_written = 8_MiB}));
  EXPECT_TRUE(range.beyond({.kind = KernelKind::fill, .bytes_written = 9_MiB}));
}

}  // namespace
}  // namespace tessera
