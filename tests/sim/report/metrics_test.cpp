#include "sim/report/metrics.h"

#include <gtest/gtest.h>

#include "sim/report/analysis/critical_path.h"
#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using namespace tessera::testing;

/// Fills in what a hand-written timeline leaves out.
StepReport report_of(const TimedProgram& timed, Timeline timeline) {
  timeline.peak_memory.resize(static_cast<std::size_t>(timed.program.layout.world_size()));
  return measure(timed, timeline);
}

double seconds(const StepReport& report, TimeCategory category) {
  return report.breakdown[category].value();
}

/// One rank that runs forward for 2 s and backward for 3 s.
struct OneRankStep {
  TimedProgram timed = handmade_program({});
  SegmentId forward = add_segment(timed, "forward", Phase::forward, {1.5, 0.5});
  SegmentId backward = add_segment(timed, "backward", Phase::backward, {3.0});
  Timeline timeline;
};

TEST(StepReport, KernelsWithoutGapsAreAllOfTheStep) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, run_of(step.backward, Phase::backward));
  const StepReport report = report_of(step.timed, ideal_timeline(step.timed));
  EXPECT_EQ(report.step_time, 5_s);
  EXPECT_EQ(seconds(report, TimeCategory::forward), 2.0);
  EXPECT_EQ(seconds(report, TimeCategory::backward), 3.0);
  EXPECT_EQ(report.breakdown.total(), 5_s);
}

TEST(StepReport, RatesAndUtilizationFollowFromTheStepTime) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  step.timed.program.tokens_per_step = 1000;
  step.timed.program.sequences_per_step = 4;
  step.timed.program.model_flops = Flops(50);
  step.timed.program.hardware_flops = Flops(80);
  const StepReport report = report_of(step.timed, ideal_timeline(step.timed));
  EXPECT_EQ(report.tokens_per_s, 500.0);  // 1000 tokens in 2 s
  EXPECT_EQ(report.samples_per_s, 2.0);
  EXPECT_EQ(report.mfu, 0.25);  // 50 FLOPs of the 2 s * 100 FLOP/s that the GPU has in fp32
  EXPECT_EQ(report.hfu, 0.40);
}

/// Ranks with a pace of their own, though it is that of all, are each looked at.
TEST(StepReport, RanksThatRanAlikeSayTheSameAsEachForItself) {
  TimedProgram timed = handmade_program({.data = 3});
  const SegmentId segment = add_segment(timed, "forward", Phase::forward, {1.5, 0.5});
  add_op(timed, 0, run_of(segment, Phase::forward));
  const Timeline timeline = ideal_timeline(timed);
  const StepReport together = report_of(timed, timeline);
  timed.paces.ranks.resize(3);
  const StepReport each = report_of(timed, timeline);
  ASSERT_EQ(together.by_rank.size(), 3u);
  for (const TimeCategory category : time_categories()) {
    EXPECT_EQ(together.breakdown[category], each.breakdown[category]);
    EXPECT_EQ(together.by_rank[2][category], each.by_rank[2][category]);
  }
  ASSERT_EQ(together.segments.size(), 1u);
  EXPECT_EQ(together.segments[0].time, each.segments[0].time);
  EXPECT_EQ(together.segments[0].runs, each.segments[0].runs);
}

TEST(StepReport, PeakIsThatOfTheGemmsPrecision) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  for (KernelLaunch& launch : step.timed.program.segments[0].kernels) {
    launch.kernel.precision = Precision::bf16;
  }
  const StepReport report = report_of(step.timed, ideal_timeline(step.timed));
  EXPECT_EQ(report.precision, Precision::bf16);
  EXPECT_EQ(report.peak_per_gpu.value(), 200.0);
}

TEST(StepReport, ConvolutionsGroupsAndAttentionChooseThePeakToo) {
  for (const KernelKind kind :
       {KernelKind::convolution, KernelKind::grouped_gemm, KernelKind::attention}) {
    OneRankStep step;
    add_op(step.timed, 0, run_of(step.forward, Phase::forward));
    Kernel& most = step.timed.program.segments[0].kernels[0].kernel;
    most.kind = kind;
    most.precision = Precision::bf16;
    most.flops = Flops(30);  // beside 10 in fp32
    const StepReport report = report_of(step.timed, ideal_timeline(step.timed));
    EXPECT_EQ(report.peak_per_gpu.value(), 200.0);
    EXPECT_EQ(report.counted.other_precisions, 0.25);
  }
}

TEST(StepReport, SaysWhatShareOfTheFlopsWinogradDoesInFewerMultiplications) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  Kernel& convolution = step.timed.program.segments[0].kernels[0].kernel;
  convolution.kind = KernelKind::convolution;
  convolution.flops = Flops(90);  // beside 10 of a product
  convolution.convolution = {.window = 3, .stride = 1, .out_height = 8, .out_width = 8};
  EXPECT_EQ(report_of(step.timed, ideal_timeline(step.timed)).counted.winograd, 0.9);
  convolution.precision = Precision::bf16;  // on tensor cores a direct product
  EXPECT_EQ(report_of(step.timed, ideal_timeline(step.timed)).counted.winograd, 0);
  convolution.precision = Precision::fp32;
  convolution.convolution.stride = 2;
  EXPECT_EQ(report_of(step.timed, ideal_timeline(step.timed)).counted.winograd, 0);
}

TEST(StepReport, CopiesToTheHostAreNoCommunication) {
  OneRankStep step;
  const auto first = add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  ProgramOp copy;
  copy.kind = OpKind::copy_in;
  copy.stream = StreamKind::host_to_device;
  const auto back = add_op_after(step.timed, 0, copy, first);
  add_op_after(step.timed, 0, run_of(step.backward, Phase::backward), back);
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 2, 6);
  record_op(step.timeline, 2, 6, 9);
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(report.breakdown.exposed_copies(), 4_s);
  EXPECT_EQ(report.breakdown.exposed_communication(), 0_s);
}

/// All of the wait counted as exposed copies.
TEST(StepReport, WhatMemoryPressureRunsAgainIsComputedNotCopied) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, run_of(step.backward, Phase::backward));
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 5, 8);
  step.timeline.memory_stalls = {{.rank = 0, .op = 1, .start = 2_s, .end = 5_s}};
  step.timeline.pressure_reruns = {
      {.rank = 0, .op = 0, .bytes = Bytes(1), .start = 2.5_s, .end = 4.5_s}};
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::forward), 2.0);
  EXPECT_EQ(seconds(report, TimeCategory::backward), 5.0);
  EXPECT_EQ(report.breakdown.exposed_copies(), 1_s);
  const TimelineIndex index(step.timed, step.timeline);
  const std::vector<PathPiece> path = critical_path(step.timed, step.timeline, index);
  ASSERT_EQ(path.size(), 5u);
  EXPECT_EQ(path[1].kind, PathPieceKind::memory);
  EXPECT_EQ(path[2].kind, PathPieceKind::kernels);
  EXPECT_EQ(path[2].op, 0);
  EXPECT_EQ(path[2].end - path[2].begin, 2_s);
  EXPECT_EQ(path[3].kind, PathPieceKind::memory);
}

TEST(StepReport, UtilizationIsEmptyWhereTheGpuHasNoPublishedPeak) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  for (KernelLaunch& launch : step.timed.program.segments[0].kernels) {
    launch.kernel.precision = Precision::fp8;
  }
  EXPECT_FALSE(report_of(step.timed, ideal_timeline(step.timed)).mfu.has_value());
}

TEST(StepReport, ReplicasShareThePeakAndTheTokens) {
  TimedProgram timed = handmade_program({.data = 2});
  const SegmentId forward = add_segment(timed, "forward", Phase::forward, {2.0});
  add_op(timed, 0, run_of(forward, Phase::forward));
  timed.program.tokens_per_step = 1000;
  timed.program.model_flops = Flops(100);
  const StepReport report = report_of(timed, ideal_timeline(timed));
  EXPECT_EQ(report.tokens_per_s_per_gpu, 250.0);
  EXPECT_EQ(report.mfu, 0.25);  // 100 FLOPs of 2 s * 2 GPUs * 100 FLOP/s
}

TEST(StepReport, GapThatNothingExplainsIsTheHosts) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, run_of(step.backward, Phase::backward));
  record_op(step.timeline, 0, 0.25, 2.25);
  record_op(step.timeline, 1, 2.75, 5.75);
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::host),
            0.75);  // 0.25 s before each op, 0.25 s more between
}

TEST(StepReport, SegmentLongerThanItsKernelsLosesTimeToWhatSharesTheGpu) {
  OneRankStep step;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  record_op(step.timeline, 0, 0, 2.5);  // kernels of 2 s
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::forward), 2.0);
  EXPECT_EQ(seconds(report, TimeCategory::contention), 0.5);
  EXPECT_EQ(seconds(report, TimeCategory::host), 0.0);
  EXPECT_EQ(report.segments.front().time, 2_s);
}

TEST(StepReport, CollectiveIsExposedOnlyWhereNoKernelRuns) {
  OneRankStep step;
  const auto first = add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  const auto reduce = add_op(step.timed, 0, all_reduce_over(GroupKind::tensor, first));
  add_op(step.timed, 0, run_of(step.backward, Phase::backward));
  add_op_after(step.timed, 0, run_of(step.forward, Phase::forward), reduce);
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 2, 6);  // hidden behind the backward until 5 s
  record_op(step.timeline, 2, 2, 5);
  record_op(step.timeline, 3, 6.125, 8.125);
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::exposed_tensor), 1.0);
  EXPECT_EQ(report.breakdown.exposed_communication(), 1_s);
  EXPECT_EQ(seconds(report, TimeCategory::host), 0.125);  // from its end to the next kernel
}

TEST(StepReport, CollectiveOfStragglersIsExposedFromJoiningItOn) {
  OneRankStep step;
  const auto first = add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  const auto reduce = add_op(step.timed, 0, all_reduce_over(GroupKind::data, first));
  add_op_after(step.timed, 0, run_of(step.backward, Phase::backward), reduce);
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 2, 4);
  step.timeline.ops.back().transfer_start = 3_s;  // the last replica joins at 3 s
  record_op(step.timeline, 2, 4, 7);
  EXPECT_EQ(seconds(report_of(step.timed, step.timeline), TimeCategory::exposed_data), 2.0);
}

TEST(StepReport, CollectivesBehindEachOtherAreEachExposed) {
  OneRankStep step;
  const auto first = add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, all_reduce_over(GroupKind::data, first));
  const auto norm = add_op(step.timed, 0, all_reduce_over(GroupKind::world, first));
  add_op_after(step.timed, 0, run_of(step.backward, Phase::backward), norm);
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 2, 4);
  record_op(step.timeline, 2, 4, 5);
  record_op(step.timeline, 3, 5, 8);
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::exposed_data), 2.0);
  EXPECT_EQ(seconds(report, TimeCategory::exposed_world), 1.0);
}

TEST(StepReport, OpThatTheHostWaitsForHoldsUpLaterKernels) {
  OneRankStep step;
  const auto first = add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  ProgramOp blocking = all_reduce_over(GroupKind::world, first);
  blocking.host_sync = true;
  add_op(step.timed, 0, blocking);
  add_op(step.timed, 0, run_of(step.backward, Phase::backward));  // no wait of its own
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 2, 3);
  record_op(step.timeline, 2, 3, 6);
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::exposed_world), 1.0);
  EXPECT_EQ(seconds(report, TimeCategory::host), 0.0);
}

TEST(StepReport, CollectiveAfterTheLastKernelIsExposed) {
  OneRankStep step;
  const auto first = add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, all_reduce_over(GroupKind::data, first));
  record_op(step.timeline, 0, 0, 2);
  record_op(step.timeline, 1, 2.5, 3.5);
  const StepReport report = report_of(step.timed, step.timeline);
  EXPECT_EQ(seconds(report, TimeCategory::exposed_data), 1.0);
  EXPECT_EQ(seconds(report, TimeCategory::host), 0.5);
}

TEST(StepReport, ReplicaThatIsDoneFirstIsIdle) {
  TimedProgram timed = handmade_program({.data = 2});
  const SegmentId forward = add_segment(timed, "forward", Phase::forward, {2.0});
  add_op(timed, 0, run_of(forward, Phase::forward));
  Timeline timeline;
  record_op(timeline, 0, 0, 2);
  record_op(timeline, 0, 1, 3);  // launched a second later
  const StepReport report = report_of(timed, timeline);
  EXPECT_EQ(report.by_rank[0][TimeCategory::other_idle], 1_s);
  EXPECT_EQ(report.by_rank[1][TimeCategory::host], 1_s);
}

TEST(StepReport, LongestSegmentsAndKernelKindsComeFirst) {
  OneRankStep step;
  step.timed.program.segments[0].kernels[1].kernel.kind = KernelKind::softmax;
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, run_of(step.forward, Phase::forward));
  add_op(step.timed, 0, run_of(step.backward, Phase::backward));
  const StepReport report = report_of(step.timed, ideal_timeline(step.timed));
  ASSERT_EQ(report.segments.size(), 2u);
  EXPECT_EQ(report.segments[0].name, "forward");  // twice 2 s against 3 s
  EXPECT_EQ(report.segments[0].runs, 2.0);
  ASSERT_EQ(report.kernel_kinds.size(), 2u);
  EXPECT_EQ(report.kernel_kinds[0].kind, KernelKind::gemm);
  EXPECT_EQ(report.kernel_kinds[0].time, 6_s);  // 2 * 1.5 + 3
  EXPECT_EQ(report.kernel_kinds[1].time, 1_s);  // 2 * 0.5
  EXPECT_EQ(report.kernel_kinds[1].launches, 2.0);
}

TEST(MemoryReport, FullestRankDecidesWhetherTheStepFits) {
  TimedProgram timed = handmade_program({.pipeline = 2});
  timed.program.stages[0].static_memory = 30_B;
  timed.program.stages[1].static_memory = 40_B;
  Timeline timeline;
  timeline.peak_memory = {80_B, 90_B};  // GPUs of 80 bytes
  const MemoryReport memory = measure(timed, timeline).memory;
  EXPECT_EQ(memory.peak, 90_B);
  EXPECT_FALSE(memory.fits);
  EXPECT_TRUE(memory.per_rank[0].fits);
  EXPECT_EQ(memory.per_rank[0].headroom, 0_B);
  EXPECT_EQ(memory.per_rank[1].headroom, Bytes(-10));
  EXPECT_EQ(memory.per_rank[1].static_bytes, 40_B);
}

TEST(MemoryReport, ContextAndCommunicatorsDecideToo) {
  TimedProgram timed = handmade_program({.pipeline = 2});
  timed.library_memory.context = 5_B;
  timed.library_memory.communicators = 4_B;
  Timeline timeline;
  timeline.peak_memory = {71_B, 60_B};  // GPUs of 80 bytes
  EXPECT_TRUE(measure(timed, timeline).memory.fits);
  timeline.peak_memory = {72_B, 60_B};
  const MemoryReport memory = measure(timed, timeline).memory;
  EXPECT_FALSE(memory.fits);
  EXPECT_EQ(memory.peak, 72_B);
  EXPECT_EQ(memory.reserved, 72_B);
  EXPECT_EQ(memory.device, 81_B);
  EXPECT_EQ(memory.capacity, 80_B);
}

}  // namespace
}  // namespace tessera
