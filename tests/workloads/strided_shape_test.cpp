#include "workloads/graph/strided_shape.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(StridedShape, HeadsOfABatchDoNotMergeAfterThePermutation) {
  // [b, s, a, d] -> [b, a, s, d]: strides (s a d, d, a d, 1)
  const StridedShape heads = StridedShape({4, 16, 2, 8}).permuted({0, 2, 1, 3});
  EXPECT_FALSE(heads.viewed({8, 16, 8}).has_value());
  EXPECT_FALSE(heads.contiguous());
}

TEST(StridedShape, HeadsOfOneSequenceDo) {
  const StridedShape heads = StridedShape({1, 16, 2, 8}).permuted({0, 2, 1, 3});
  const auto merged = heads.viewed({2, 16, 8});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(merged->strides(), (Sizes{8, 16, 1}));
}

TEST(StridedShape, SequenceFirstLayoutMergesBatchAndHeads) {
  // a third of a fused [s, b, a, 3 d] projection, as Megatron splits it
  const StridedShape q = StridedShape({16, 4, 2, 24}).narrowed(3, 8);
  const auto merged = q.viewed({16, 8, 8});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(merged->strides(), (Sizes{192, 24, 1}));
}

TEST(StridedShape, ExpandedDimensionsHoldOneCopy) {
  const StridedShape mask = StridedShape({4, 1, 1, 16}).expanded({4, 2, 16, 16});
  EXPECT_EQ(mask.elements(), 4 * 2 * 16 * 16);
  EXPECT_EQ(mask.distinct_elements(), 4 * 16);
}

TEST(StridedShape, DenseKeepsTheOrderInMemory) {
  const StridedShape window({2, 3, 4}, {1, 100, 10});
  EXPECT_EQ(window.dense().strides(), (Sizes{1, 8, 2}));
}

}  // namespace
}  // namespace tessera
