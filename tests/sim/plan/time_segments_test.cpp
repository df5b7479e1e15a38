#include "sim/plan/time_segments.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// One microsecond per row; counts how often it is asked.
class CountingPredictor : public KernelPredictor {
 public:
  KernelPrediction predict(const Kernel& kernel) const override {
    ++asked;
    return {.duration = Seconds(static_cast<double>(kernel.rows) * 1e-6)};
  }
  Seconds isolated_launch_overhead(const Kernel&) const override { return Seconds(); }

  mutable int asked = 0;
};

KernelLaunch launch(std::int64_t rows) {
  return {.kernel = {.rows = rows, .cols = 1}, .name = "k"};
}

Segment segment(std::vector<KernelLaunch> kernels, int host_ops) {
  return {.name = "segment", .kernels = std::move(kernels), .host_ops = host_ops};
}

TEST(TimeSegments, DurationIsTheSumOfTheKernels) {
  const CountingPredictor predictor;
  Program program;
  program.segments = {segment({launch(10), launch(30)}, 3)};
  const auto timed =
      time_segments(program, predictor, {.per_call = 5_us, .per_communication = 0_us}).segments;
  ASSERT_EQ(timed.size(), 1u);
  EXPECT_DOUBLE_EQ(timed[0].duration.value(), 40e-6);
  EXPECT_DOUBLE_EQ(timed[0].kernel_durations[1].value(), 30e-6);
  EXPECT_DOUBLE_EQ(timed[0].host_time.value(), 15e-6);
}

TEST(TimeSegments, TheCpuTakesAsLongAsItsMemory) {
  const CountingPredictor predictor;
  Program program;
  program.segments = {segment({}, 0)};
  program.segments[0].host_moved = Bytes(3'000'000);
  const HostCosts host{.per_call = 5_us, .per_communication = 0_us, .memory = 30_GBps};
  EXPECT_DOUBLE_EQ(time_segments(program, predictor, host).segments[0].duration.value(), 100e-6);
}

/// One call for a layer's segment; those of the optimizer and those that the host waits for stay.
TEST(TimeSegments, ACudaGraphIsOneCallOrNone) {
  const auto host_us = [](CudaGraphs graphs, Phase phase, bool host_sync = false) {
    Segment of_three_calls = segment({launch(10)}, 3);
    of_three_calls.phase = phase;
    of_three_calls.host_sync = host_sync;
    const HostCosts host{.per_call = 5_us, .per_communication = 0_us, .graphs = graphs};
    return std::lround(host.to_launch(of_three_calls).value() * 1e6);
  };
  EXPECT_EQ(host_us(CudaGraphs::off, Phase::forward), 15);
  EXPECT_EQ(host_us(CudaGraphs::layers, Phase::forward), 5);
  EXPECT_EQ(host_us(CudaGraphs::full_iteration, Phase::backward), 0);
  EXPECT_EQ(host_us(CudaGraphs::full_iteration, Phase::optimizer), 15);
  EXPECT_EQ(host_us(CudaGraphs::layers, Phase::forward, true), 15);
  StepOptions step;
  step.framework.cuda_graphs = CudaGraphs::full_iteration;
  EXPECT_EQ(host_costs(step).per_communication, 0_us);
}

TEST(TimeSegments, GraphsOfModulesAreACallEachBesideTheOtherKernels) {
  Segment layer = segment({launch(10), launch(10), launch(10), launch(10)}, 8);
  layer.phase = Phase::forward;
  layer.kernels[0].name = "ln_attention";
  layer.kernels[1].name = "attention.qkv";
  layer.kernels[2].name = "mlp.router.top_k";
  layer.kernels[3].name = "mlp.experts.up";
  const auto host_us = [&](std::vector<std::string> modules) {
    const HostCosts host{.per_call = 5_us,
                         .per_communication = 0_us,
                         .graphs = CudaGraphs::layers,
                         .modules = std::move(modules)};
    return std::lround(host.to_launch(layer).value() * 1e6);
  };
  // Half of the kernels, so four of eight calls, and a graph; then a quarter and two graphs.
  EXPECT_EQ(host_us({"attn"}), (4 + 1) * 5);
  EXPECT_EQ(host_us({"attn", "moe_router"}), (2 + 2) * 5);
}

TEST(TimeSegments, EqualKernelsArePredictedOnce) {
  const CountingPredictor predictor;
  Program program;
  program.segments = {segment({launch(10), launch(10), launch(20)}, 0), segment({launch(20)}, 0)};
  const TimedSegments timed = time_segments(program, predictor, {});
  EXPECT_EQ(predictor.asked, 2);
  EXPECT_EQ(timed.kernels.size(), 2u);
  EXPECT_EQ(timed.segments[0].kernels, (std::vector<std::size_t>{0, 0, 1}));
  EXPECT_EQ(timed.segments[1].kernels, (std::vector<std::size_t>{1}));
}

TEST(HostCosts, ACompiledGraphLaunchesFasterThanTheDispatcher) {
  StepOptions eager;
  StepOptions compiled;
  compiled.kernels = KernelMode::fused;
  EXPECT_LT(host_costs(compiled).per_call, host_costs(eager).per_call);
}

}  // namespace
}  // namespace tessera
