#include "sim/report/analysis/uncertainty.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/report/time_category.h"
#include "tests/sim/trace/handmade_step.h"

namespace tessera {
namespace {

TimedKernel kernel(KernelKind kind, const LogSpread& spread, const Extrapolation& beyond = {}) {
  return {{.kind = kind}, {.spread = spread, .extrapolated = beyond}};
}

TEST(StepInterval, JoinsKernelsCommunicationAndSource) {
  TimedProgram timed = testing::handmade_program({});
  timed.kernels = {kernel(KernelKind::gemm, {.gpu = 0.1})};
  TimeBreakdown breakdown;
  breakdown[TimeCategory::forward] = 3_s;
  breakdown[TimeCategory::bubble] = 1_s;
  breakdown[TimeCategory::exposed_data] = 2_s;
  const auto interval = step_interval(timed, {3_s}, breakdown);
  ASSERT_TRUE(interval);
  // Two thirds kernels and bubble, by 0.1; a third communication, by 0.15; the source by 0.06.
  const double spread = std::sqrt(0.1 * 0.1 * 4 / 9 + 0.15 * 0.15 / 9 + 0.06 * 0.06);
  const double factor = std::exp(1.2816 * spread);  // 80 % of a normal distribution: 1.2816 sd
  EXPECT_NEAR(interval->time.low.value(), 6 / factor, 1e-9);
  EXPECT_NEAR(interval->time.high.value(), 6 * factor, 1e-9);
}

TEST(StepInterval, ShapesPartlyCancelWhatTheGpuHasInCommonDoesNot) {
  TimedProgram timed = testing::handmade_program({});
  timed.kernels = {kernel(KernelKind::gemm, {.gpu = 0.2, .shape = 0.3}),
                   kernel(KernelKind::softmax, {.gpu = 0.1, .shape = 0.4})};
  TimeBreakdown breakdown;
  breakdown[TimeCategory::forward] = 2_s;
  const auto interval = step_interval(timed, {1_s, 1_s}, breakdown);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->kernels.gpu, 0.15);    // mean of 0.2 and 0.1
  EXPECT_DOUBLE_EQ(interval->kernels.shape, 0.25);  // hypot(0.3, 0.4) / 2
}

TEST(StepInterval, IsUnknownWhereThePredictorKnowsNoSpread) {
  TimedProgram timed = testing::handmade_program({});
  timed.kernels = {kernel(KernelKind::gemm, {})};
  TimeBreakdown breakdown;
  breakdown[TimeCategory::forward] = 1_s;
  EXPECT_FALSE(step_interval(timed, {1_s}, breakdown));
}

TEST(ExtrapolatedKernels, AreListedByKindWithTheFarthestInput) {
  TimedProgram timed = testing::handmade_program({});
  timed.kernels = {kernel(KernelKind::gemm, {}), kernel(KernelKind::gemm, {}, {"k", 2}),
                   kernel(KernelKind::gemm, {}, {"n", 3}),
                   kernel(KernelKind::softmax, {}, {"traffic", 1.5})};
  const auto beyond = extrapolated_kernels(timed, {5_s, 1_s, 1_s, 3_s});
  ASSERT_EQ(beyond.size(), 2u);
  EXPECT_EQ(beyond[0].kind, KernelKind::softmax);
  EXPECT_DOUBLE_EQ(beyond[0].share, 0.3);
  EXPECT_EQ(beyond[1].input, "n");
  EXPECT_DOUBLE_EQ(beyond[1].factor, 3);
  EXPECT_DOUBLE_EQ(beyond[1].share, 0.2);
}

}  // namespace
}  // namespace tessera
