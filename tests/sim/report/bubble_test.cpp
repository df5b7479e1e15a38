#include <ostream>

#include <gtest/gtest.h>

#include "sim/report/metrics.h"
#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using namespace tessera::testing;

struct PipelineShape {
  int stages;
  int micro_batches;
};

std::ostream& operator<<(std::ostream& out, const PipelineShape& shape) {
  return out << shape.stages << " stages, " << shape.micro_batches << " micro-batches";
}

class BubbleOfOneFOneB : public ::testing::TestWithParam<PipelineShape> {};

/// Narayanan et al., SC 2021, section 2.2: (p-1) (t_f + t_b) of a step of (m+p-1) (t_f + t_b).
TEST_P(BubbleOfOneFOneB, IsTheTextbookFraction) {
  const auto [p, m] = GetParam();
  const TimedProgram timed = one_f_one_b_step(p, m);
  const StepReport report = measure(timed, ideal_timeline(timed));
  EXPECT_EQ(report.step_time.value(), 3.0 * (m + p - 1));
  EXPECT_DOUBLE_EQ(report.bubble_fraction, (p - 1.0) / (m + p - 1.0));
}

TEST_P(BubbleOfOneFOneB, AndComputeAreTheWholeStepOfEveryRank) {
  const auto [p, m] = GetParam();
  const TimedProgram timed = one_f_one_b_step(p, m);
  const StepReport report = measure(timed, ideal_timeline(timed));
  for (const TimeBreakdown& rank : report.by_rank) {
    EXPECT_EQ(rank[TimeCategory::bubble].value(), 3.0 * (p - 1));
    EXPECT_EQ(rank[TimeCategory::forward].value(), 1.0 * m);
    EXPECT_EQ(rank[TimeCategory::backward].value(), 2.0 * m);
    EXPECT_EQ(rank.total(), report.step_time);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BubbleOfOneFOneB,
                         ::testing::Values(PipelineShape{1, 4}, PipelineShape{2, 1},
                                           PipelineShape{2, 8}, PipelineShape{4, 2},
                                           PipelineShape{4, 4}, PipelineShape{8, 32}),
                         [](const auto& shape) {
                           return "p" + std::to_string(shape.param.stages) + "m" +
                                  std::to_string(shape.param.micro_batches);
                         });

TEST(Bubble, EndsWhereTheMessageIsOnItsWay) {
  const TimedProgram timed = one_f_one_b_step(2, 1);
  // Stage 0: forward 0-1, recv until 4.5, backward 4.5-6.5.
  // Stage 1: message 1-1.25, forward and backward 1.25-4.25, message until 4.5, then done.
  const StepReport report = measure(timed, ideal_timeline(timed, 0.25_s));
  EXPECT_EQ(report.step_time, 6.5_s);
  EXPECT_EQ(report.by_rank[0][TimeCategory::bubble], 3.25_s);            // 1 to 4.25
  EXPECT_EQ(report.by_rank[0][TimeCategory::exposed_pipeline], 0.25_s);  // 4.25 to 4.5
  EXPECT_EQ(report.by_rank[1][TimeCategory::bubble], 3_s);               // 0 to 1, 4.5 to 6.5
  EXPECT_EQ(report.by_rank[1][TimeCategory::exposed_pipeline], 0.5_s);   // in, and its own out
}

TEST(Bubble, LateHostIsNotBlamedWhileTheSenderIsLater) {
  TimedProgram timed = handmade_program({.pipeline = 2});
  const SegmentId forward = add_segment(timed, "forward", Phase::forward, {4.0});
  const auto sent = add_op(timed, 0, run_of(forward, Phase::forward));
  add_op(timed, 0, send_to(1, 0, sent));
  const auto received = add_op(timed, 1, recv_from(0, 0));
  add_op_after(timed, 1, run_of(forward, Phase::forward), received);
  Timeline timeline;
  record_op(timeline, 0, 0, 4);
  record_op(timeline, 1, 4, 4);
  record_op(timeline, 0, 1, 4);  // the host posts the recv at 1 s; the message comes at 4 s
  record_op(timeline, 1, 4, 8);
  timeline.peak_memory.resize(2);
  const StepReport report = measure(timed, timeline);
  EXPECT_EQ(report.by_rank[1][TimeCategory::bubble], 4_s);
  EXPECT_EQ(report.by_rank[1][TimeCategory::host], Seconds());
}

TEST(Bubble, HoldsTheWaitForOtherStagesInACollectiveOverThem) {
  TimedProgram timed = handmade_program({.pipeline = 2});
  const SegmentId backward = add_segment(timed, "backward", Phase::backward, {2.0});
  for (const int stage : {0, 1}) {
    const auto run = add_op(timed, stage, run_of(backward, Phase::backward));
    add_op(timed, stage, all_reduce_over(GroupKind::world, run));
  }
  Timeline timeline;
  record_op(timeline, 0, 3, 5);
  record_op(timeline, 1, 5, 6);
  record_op(timeline, 0, 0, 2);
  record_op(timeline, 1, 2, 6);
  timeline.ops.back().transfer_start = 5_s;  // stage 0 joins the gradient norm at 5 s
  timeline.peak_memory.resize(2);
  const StepReport report = measure(timed, timeline);
  EXPECT_EQ(report.by_rank[1][TimeCategory::bubble], 3_s);
  EXPECT_EQ(report.by_rank[1][TimeCategory::exposed_world], 1_s);
}

}  // namespace
}  // namespace tessera
