#include "lab/fit/studies/attention_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/fit/attention/attention_errors.h"
#include "tests/lab/fit/attention/synthetic_attention.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

TEST(ErrorGroups, StateMeanMedianAndBias) {
  ErrorGroups errors;
  errors.add("a", 90, 100);   // -10 %
  errors.add("a", 102, 100);  // +2 %
  errors.add("a", 101, 100);  // +1 %
  EXPECT_NEAR(errors.mean("a"), 13. / 3, 1e-9);
  EXPECT_EQ(errors.mean("b"), 0);
  // Median of 1, 2, 10; bias of -7 / 3.
  EXPECT_THAT(errors.table(), testing::HasSubstr("     3    4.3     2.0   -2.3\n"));
}

TEST(AttentionStudy, ATableOfItsOwnKindHasNoError) {
  const ScratchFolder folder;
  const AttentionVector x{-2, -.7, -.25, .8, 1.2, -1, -.693, -.5, 2, .5, 0, 0, 0, .12, 0, 0};
  const AttentionTable table = read_attention(
      folder.write("attention.csv", kAttentionHeader + synthetic_attention("A100-SXM4-80GB", x)));
  const AttentionWeights weights = train_attention(table, half_test_gpu);
  const std::string text = attention_study(table, half_test_gpu, weights);
  EXPECT_THAT(text, testing::ContainsRegex("A100 seq >=  512 +[0-9]+ +0\\.[0-5] "));
  EXPECT_THAT(text, testing::HasSubstr("the measurements lack a stack"));
  // Without the traffic of the KV cache the form cannot follow.
  EXPECT_THAT(text, testing::ContainsRegex("full form +0\\."));
  EXPECT_THAT(text, testing::Not(testing::ContainsRegex("no serving traffic +0\\.[0-5]")));
}

}  // namespace
}  // namespace tessera
