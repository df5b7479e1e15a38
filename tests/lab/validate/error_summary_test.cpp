#include "lab/validate/error_summary.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(ErrorSummary, MeanIsOverAbsoluteValuesAndBiasOverSignedOnes) {
  const ErrorSummary summary = summarize_errors({-10, 4, 6, 20});
  EXPECT_EQ(summary.n, 4);
  EXPECT_DOUBLE_EQ(summary.mean_abs_error_pct, (10 + 4 + 6 + 20) / 4.0);
  EXPECT_DOUBLE_EQ(summary.bias_pct, (-10 + 4 + 6 + 20) / 4.0);
  EXPECT_DOUBLE_EQ(summary.max_abs_error_pct, 20);
  EXPECT_DOUBLE_EQ(summary.median_abs_error_pct, (6 + 10) / 2.0);
}

TEST(ErrorSummary, MedianOfAnOddCountIsTheMiddleValue) {
  EXPECT_DOUBLE_EQ(summarize_errors({-3, 1, 2}).median_abs_error_pct, 2);
}

TEST(ErrorSummary, NothingMeasuredIsZeroRows) {
  EXPECT_EQ(summarize_errors({}).n, 0);
}

}  // namespace
}  // namespace tessera
