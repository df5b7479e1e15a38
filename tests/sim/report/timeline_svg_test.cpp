#include "sim/report/drawings/timeline_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/drawings/timeline_slices.h"
#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using namespace tessera::testing;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<TimelineSlice> compute_slices(const TimedProgram& timed, const Timeline& timeline,
                                          Seconds resolution) {
  return timeline_slices(TimelineIndex(timed, timeline), 0, StreamKind::compute, resolution);
}

/// One rank: forward of two micro-batches (1 s each) with a gap of 0.25 s between.
struct TwoForwards {
  TwoForwards() {
    const SegmentId forward = add_segment(timed, "forward", Phase::forward, {1.0});
    add_op(timed, 0, run_of(forward, Phase::forward, 0));
    add_op(timed, 0, run_of(forward, Phase::forward, 1));
    record_op(timeline, 0, 0, 1);
    record_op(timeline, 1, 1.25, 2.25);
    timeline.peak_memory = {40_B};
  }
  TimedProgram timed = handmade_program({});
  Timeline timeline;
};

TEST(TimelineSlices, MicroBatchesStayApartWhereTheyCanBeSeen) {
  const TwoForwards step;
  const auto slices = compute_slices(step.timed, step.timeline, 0.5_s);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].micro_batch, 1);
  EXPECT_EQ(slices[1].begin, 1.25_s);
}

TEST(TimelineSlices, WhatAPixelCannotTellApartBecomesOneBar) {
  const TwoForwards step;
  const auto slices = compute_slices(step.timed, step.timeline, 1.5_s);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].end, 2.25_s);
  EXPECT_EQ(slices[0].micro_batch, -1);
}

TEST(TimelineSlices, BarsOfOneMicroBatchWithAVisibleGapStayApart) {
  TwoForwards step;
  step.timed.program.stages[0].ops[1].micro_batch = 0;
  EXPECT_EQ(compute_slices(step.timed, step.timeline, 0.125_s).size(), 2u);
  EXPECT_EQ(compute_slices(step.timed, step.timeline, 0.5_s).size(), 1u);
}

TEST(TimelineSlices, WaitingForPeersIsABarOfItsOwn) {
  TimedProgram timed = handmade_program({});
  add_op(timed, 0, all_reduce_over(GroupKind::data, -1));
  Timeline timeline;
  record_op(timeline, 0, 0, 3);
  timeline.ops.back().transfer_start = 2_s;
  const TimelineIndex index(timed, timeline);
  const auto slices = timeline_slices(index, 0, StreamKind::data_comm, 0.5_s);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].kind, TimeCategory::other_idle);
  EXPECT_EQ(slices[0].end, 2_s);
  EXPECT_EQ(slices[1].kind, TimeCategory::exposed_data);
}

TEST(TimelineSlices, RecvWaitsUntilItsSendBegins) {
  const TimedProgram timed = one_f_one_b_step(2, 1);
  const Timeline timeline = ideal_timeline(timed, 0.25_s);
  const TimelineIndex index(timed, timeline);
  const auto slices = timeline_slices(index, 1, StreamKind::pipeline_recv, 0.125_s);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].end, 1_s);  // the forward of stage 0 takes 1 s
  EXPECT_EQ(slices[1].kind, TimeCategory::exposed_pipeline);
  EXPECT_EQ(slices[1].end, 1.25_s);
}

TEST(TimelineSvg, DrawsBarsToScale) {
  const TwoForwards step;
  const std::string svg = timeline_svg(step.timed, step.timeline, {.title = "t", .width = 642});
  // 450 pixels of plot (642 - 168 - 24) for 2.25 s: the second forward begins at 168 + 250
  // and is 200 wide, less the edge of 0.6.
  EXPECT_THAT(svg, HasSubstr("x=\"418\" y=\"64\" width=\"199.4\""));
}

TEST(TimelineSvg, LegendNamesOnlyWhatIsDrawn) {
  const TwoForwards step;
  const std::string svg = timeline_svg(step.timed, step.timeline, {.title = "t"});
  EXPECT_THAT(svg, HasSubstr(">forward<"));
  EXPECT_THAT(svg, Not(HasSubstr(">backward<")));
}

TEST(TimelineSvg, SaysHowManyGpusItLeavesOut) {
  const TimedProgram timed = one_f_one_b_step(4, 2);
  const std::string svg = timeline_svg(timed, ideal_timeline(timed), {.title = "t", .max_gpus = 3});
  EXPECT_THAT(svg, HasSubstr(">GPU 2<"));
  EXPECT_THAT(svg, Not(HasSubstr(">GPU 3<")));
  EXPECT_THAT(svg, HasSubstr("GPUs not drawn: 1"));
}

TEST(TimelineSvg, TitleCannotBreakTheFile) {
  const TwoForwards step;
  const std::string svg =
      timeline_svg(step.timed, step.timeline, {.title = "<script>&\"</script>"});
  EXPECT_THAT(svg, HasSubstr(">&lt;script&gt;&amp;&quot;&lt;/script&gt;<"));
}

TEST(TimelineSvg, EmptyStepIsAnEmptyPicture) {
  const TimedProgram timed = handmade_program({});
  Timeline timeline;
  timeline.peak_memory = {0_B};
  EXPECT_THAT(timeline_svg(timed, timeline, {.title = "t"}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace tessera
