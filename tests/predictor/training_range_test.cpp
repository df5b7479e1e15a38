#include "predictor/training_range.h"

#include <gtest/gtest.h>

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

TEST(TrainingRange, MemoryBoundKernelsAreComparedByTraffic) {
  TrainingRange range;
  range.include({.kind = KernelKind::softmax, .bytes_read = 4_MiB, .bytes_written = 4_MiB});
  EXPECT_FALSE(range.beyond({.kind = KernelKind::fill, .bytes_written = 8_MiB}));
  EXPECT_TRUE(range.beyond({.kind = KernelKind::fill, .bytes_written = 9_MiB}));
}

}  // namespace
}  // namespace tessera
