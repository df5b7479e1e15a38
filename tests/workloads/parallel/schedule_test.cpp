#include "workloads/schedules/schedule.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::ElementsAre;

constexpr auto F = PassDirection::forward;
constexpr auto B = PassDirection::backward;

/// Most micro-batches whose activations a stage holds at once.
int most_in_flight(const std::vector<ScheduledPass>& passes) {
  int in_flight = 0;
  int most = 0;
  for (const ScheduledPass& pass : passes) {
    in_flight += pass.direction == F ? 1 : -1;
    most = std::max(most, in_flight);
  }
  return most;
}

TEST(OneFOneB, AlternatesAfterTheWarmUp) {
  // stage 1 of 3, 4 micro-batches: one forward ahead
  EXPECT_THAT(one_f_one_b(1, 3, 4),
              ElementsAre(ScheduledPass{F, 0}, ScheduledPass{F, 1}, ScheduledPass{B, 0},
                          ScheduledPass{F, 2}, ScheduledPass{B, 1}, ScheduledPass{F, 3},
                          ScheduledPass{B, 2}, ScheduledPass{B, 3}));
}

TEST(OneFOneB, HoldsAsManyMicroBatchesAsStagesBehindIt) {
  for (const int stages : {1, 2, 4, 7}) {
    for (const int micro_batches : {1, 3, 8}) {
      for (int stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(most_in_flight(one_f_one_b(stage, stages, micro_batches)),
                  std::min(micro_batches, stages - stage));
      }
    }
  }
}

TEST(Gpipe, HoldsEveryMicroBatch) {
  EXPECT_EQ(most_in_flight(gpipe(5)), 5);
  EXPECT_EQ(gpipe(5).size(), 10u);
}

TEST(Schedules, RunEveryPassOnceAndForwardBeforeBackward) {
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const auto passes = schedule_passes(schedule, 1, {.stages = 4, .micro_batches = 6});
    for (int i = 0; i < 6; ++i) {
      const auto forward = std::find(passes.begin(), passes.end(), ScheduledPass{F, i});
      const auto backward = std::find(passes.begin(), passes.end(), ScheduledPass{B, i});
      EXPECT_LT(forward, backward);
      EXPECT_NE(backward, passes.end());
    }
    EXPECT_EQ(passes.size(), 12u);
  }
}

}  // namespace
}  // namespace tessera
