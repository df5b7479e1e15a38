// Bubbles and activations of the pipeline schedules against the closed forms of their papers.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/parallel/unit_pipeline.h"

namespace tessera {
namespace {

using test::PassTimes;
using test::UnitPipeline;
using ::testing::ElementsAre;

constexpr auto F = PassDirection::forward;
constexpr auto B = PassDirection::backward;

StepOptions pipeline(PipelineSchedule schedule, int stages, int micro_batches,
                     int virtual_stages = 1) {
  StepOptions step;
  step.schedule = schedule;
  step.micro_batch = 1;
  step.global_batch = micro_batches;
  step.layout.pipeline = stages;
  step.layout.virtual_stages = virtual_stages;
  return step;
}

/// Time in which the busiest stage does nothing, of a step.
double bubble(const UnitPipeline& run, int stages) {
  double busy = 0;
  for (int stage = 0; stage < stages; ++stage) busy = std::max(busy, run.busy(stage));
  return run.makespan() - busy;
}

constexpr PassTimes kTimes[] = {{1, 1, 1}, {1, 1.25, 0.75}, {2, 3, 1.5}};

TEST(PipelineBubble, OfGpipeAndOneFOneBIsStagesLessOne) {
  // (p-1)(F+B) of (m+p-1)(F+B)
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    for (const int p : {1, 2, 4, 7}) {
      for (const int m : {1, 3, 8, 20}) {
        for (const PassTimes& t : kTimes) {
          const UnitPipeline run(pipeline(schedule, p, m), t);
          const double pass = t.forward + t.input_gradient + t.weight_gradient;
          ASSERT_EQ(run.left(), 0u);
          EXPECT_DOUBLE_EQ(run.makespan(), (m + p - 1) * pass);
          EXPECT_NEAR(bubble(run, p) / run.makespan(), (p - 1.0) / (m + p - 1.0), 1e-12);
        }
      }
    }
  }
}

TEST(PipelineBubble, OfInterleavedIsDividedByTheVirtualStages) {
  // Narayanan et al., SC 2021: (p-1)(F+B)/v, here with passes over one chunk of 1/v
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3, 5}) {
      for (const int groups : {1, 2, 5}) {
        for (const PassTimes& t : kTimes) {
          const int m = groups * p;
          const UnitPipeline run(pipeline(PipelineSchedule::interleaved_1f1b, p, m, v), t);
          const double pass = t.forward + t.input_gradient + t.weight_gradient;
          ASSERT_EQ(run.left(), 0u);
          EXPECT_NEAR(run.makespan(), (v * m + p - 1) * pass, 1e-9) << p << " " << v << " " << m;
          EXPECT_NEAR(bubble(run, p) / run.makespan(), (p - 1.0) / (v * m + p - 1.0), 1e-12);
        }
      }
    }
  }
}

TEST(PipelineBubble, OfZeroBubbleH1IsAThirdOfOneFOneB) {
  // Qi et al., table 2: (p-1)(F+B-W) with B the input's gradient alone
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {2 * p, 3 * p + 1, 40}) {
      const UnitPipeline run(pipeline(PipelineSchedule::zb_h1, p, m), {});
      ASSERT_EQ(run.left(), 0u);
      EXPECT_DOUBLE_EQ(bubble(run, p), p - 1.0) << p << " stages, " << m << " micro-batches";
    }
  }
}

TEST(PipelineBubble, OfZeroBubbleH2IsNothingBetweenFirstAndLastPass) {
  // ibid.: (p-1)(F+B-2W) = 0 where F = B = W; the stages begin and end one forward pass apart
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {2 * p, 3 * p + 1, 40}) {
      const UnitPipeline run(pipeline(PipelineSchedule::zb_h2, p, m), {});
      ASSERT_EQ(run.left(), 0u);
      for (int stage = 0; stage < p; ++stage) EXPECT_DOUBLE_EQ(run.span(stage), 3.0 * m);
      EXPECT_DOUBLE_EQ(run.makespan(), 3.0 * m + p - 1);
    }
  }
}

TEST(PipelineBubble, OfZeroBubbleVIsNothingBetweenFirstAndLastPass) {
  // Qi et al., 2024: where F = B = W; two chunks of three passes each for every micro-batch
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {2 * p, 3 * p + 1, 40}) {
      const UnitPipeline run(pipeline(PipelineSchedule::zbv, p, m, 2), {});
      ASSERT_EQ(run.left(), 0u) << p << " stages, " << m << " micro-batches";
      for (int stage = 0; stage < p; ++stage) EXPECT_DOUBLE_EQ(run.span(stage), 6.0 * m);
    }
  }
}

TEST(PipelineBubble, OfZeroBubbleFollowsThePassTimes) {
  // The forms hold while a stage's kept weight gradients fill what it waits for: W <= B here.
  for (const PassTimes& t : {PassTimes{1, 1.25, 0.75}, PassTimes{1, 1, 0.5}}) {
    for (const int p : {2, 4, 8}) {
      const UnitPipeline h1(pipeline(PipelineSchedule::zb_h1, p, 5 * p), t);
      EXPECT_NEAR(bubble(h1, p), (p - 1) * (t.forward + t.input_gradient - t.weight_gradient),
                  1e-9);
      const UnitPipeline h2(pipeline(PipelineSchedule::zb_h2, p, 5 * p), t);
      EXPECT_NEAR(h2.span(0) - h2.busy(0),
                  (p - 1) * (t.forward + t.input_gradient - 2 * t.weight_gradient), 1e-9);
    }
  }
}

TEST(PipelineBubble, OfDualPipeIsThatOfItsTable) {
  // DeepSeek-V3, table 2: (p/2-1)(F&B + B - 3W), B the whole backward pass, and F&B the time of a
  // pair that begins and ends together: F + B where it gains nothing
  for (const PassTimes& t : {PassTimes{1, 1, 1, true}, PassTimes{2, 3, 1.5, true}}) {
    for (const int p : {2, 4, 8, 16}) {
      for (const int m : {2 * p, 2 * p + 4, 6 * p}) {
        const UnitPipeline run(pipeline(PipelineSchedule::dualpipe, p, m), t);
        ASSERT_EQ(run.left(), 0u);
        const double backward = t.input_gradient + t.weight_gradient;
        const double pair = t.forward + backward;
        EXPECT_NEAR(bubble(run, p), (p / 2 - 1) * (pair + backward - 3 * t.weight_gradient), 1e-9)
            << p << " stages, " << m << " micro-batches";
      }
    }
  }
}

TEST(PipelineBubble, OfDualPipeIsSmallerWherePairsRunOneAfterTheOther) {
  // the forward pass of a pair ends, and its result leaves, ahead of the backward pass
  for (const PassTimes& t : {PassTimes{1, 1, 1}, PassTimes{1, 1, 0.5}, PassTimes{1, 1.1, 1}}) {
    for (const int p : {2, 4, 8, 16}) {
      const UnitPipeline run(pipeline(PipelineSchedule::dualpipe, p, 3 * p), t);
      EXPECT_NEAR(bubble(run, p), (p / 2 - 1) * (t.forward + t.input_gradient - t.weight_gradient),
                  1e-9);
    }
  }
}

/// "F00 I12": direction, chunk and micro-batch of each pass.
std::string drawn(const std::vector<ScheduledPass>& passes) {
  std::string text;
  for (const ScheduledPass& pass : passes) {
    const bool forward = pass.direction == PassDirection::forward;
    text += forward ? " F" : pass.direction == PassDirection::input_gradient ? " I" : " W";
    text += std::to_string(pass.chunk) + std::to_string(pass.micro_batch);
  }
  return text;
}

// Drawn by hand for two stages and three micro-batches: stage 0 has the first and the last quarter
// of the model, stage 1 those between.
TEST(ZeroBubbleV, OrdersPassesAsDrawn) {
  EXPECT_EQ(drawn(zero_bubble_v(0, 2, 3)),
            " F00 F01 F02 F10 I10 W10 F11 I11 W11 I00 W00 F12 I12 W12 I01 W01 I02 W02");
  EXPECT_EQ(drawn(zero_bubble_v(1, 2, 3)),
            " F00 F10 F01 F11 I10 W10 F02 I00 W00 F12 I11 W11 I01 I12 I02 W01 W12 W02");
}

// A chunk is half a stage of 1F1B, whose first stage keeps p of them.
TEST(ZeroBubbleV, KeepsNoMoreThanTheFirstStageOfOneFOneB) {
  for (const int p : {2, 3, 4, 8}) {
    const UnitPipeline run(pipeline(PipelineSchedule::zbv, p, 5 * p, 2), {});
    int most = 0;
    for (int stage = 0; stage < p; ++stage) most = std::max(most, run.most_held(stage));
    EXPECT_EQ(most, 2 * p);
  }
}

// Fewer micro-batches than fill the pipeline: those that there are run, in an order that ends.
TEST(ZeroBubbleV, RunsFewMicroBatches) {
  for (const int m : {1, 2, 5}) {
    const UnitPipeline run(pipeline(PipelineSchedule::zbv, 4, m, 2), {});
    EXPECT_EQ(run.left(), 0u);
    EXPECT_EQ(run.order(2).size(), 6u * static_cast<unsigned>(m));
  }
}

TEST(PipelineActivations, AreThoseOfThePapers) {
  for (const int p : {2, 4, 8}) {
    const int m = 5 * p;
    const UnitPipeline gpipe(pipeline(PipelineSchedule::gpipe, p, m), {});
    const UnitPipeline plain(pipeline(PipelineSchedule::one_f_one_b, p, m), {});
    const UnitPipeline h1(pipeline(PipelineSchedule::zb_h1, p, m), {});
    const UnitPipeline h2(pipeline(PipelineSchedule::zb_h2, p, m), {});
    for (int stage = 0; stage < p; ++stage) {
      EXPECT_EQ(gpipe.most_held(stage), m);
      EXPECT_EQ(plain.most_held(stage), p - stage);
      EXPECT_EQ(h1.most_held(stage), p);          // 1F1B's first stage
      EXPECT_EQ(h2.most_held(stage), 2 * p - 1);  // ibid., table 1
    }
    for (const int v : {2, 3}) {
      // Korthikanti et al., 2022: 1 + (p-1)/(p v) of a stage's layers times p, in chunks of 1/v
      const UnitPipeline run(pipeline(PipelineSchedule::interleaved_1f1b, p, m, v), {});
      EXPECT_EQ(run.most_held(0), p * v + p - 1);
      EXPECT_EQ(run.most_held(p - 1), (v - 1) * p + 1);
    }
    const UnitPipeline dual(pipeline(PipelineSchedule::dualpipe, p, m), {});
    for (int stage = 0; stage < p; ++stage) EXPECT_LE(dual.most_held(stage), p + 1);
    EXPECT_EQ(dual.most_held(p / 2 - 1), p + 1);
  }
}

TEST(PipelineOrder, OfInterleavedIsMegatrons) {
  // 2 stages of 2 chunks, 4 micro-batches: the first stage runs (2 - 0 - 1) * 2 + (2 - 1) * 2 = 4
  // forward passes ahead
  const auto passes = interleaved_1f1b(0, {2, 4, 2});
  EXPECT_THAT(std::vector(passes.begin(), passes.begin() + 8),
              ElementsAre(ScheduledPass{F, 0, 0}, ScheduledPass{F, 1, 0}, ScheduledPass{F, 0, 1},
                          ScheduledPass{F, 1, 1}, ScheduledPass{F, 2, 0}, ScheduledPass{B, 0, 1},
                          ScheduledPass{F, 3, 0}, ScheduledPass{B, 1, 1}));
}

TEST(PipelineOrder, RunsEveryPassOfEveryChunkOnce) {
  for (const auto schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved_1f1b,
        PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::dualpipe}) {
    const int v = schedule == PipelineSchedule::interleaved_1f1b ? 3 : 1;
    for (int stage = 0; stage < 4; ++stage) {
      const auto passes = schedule_passes(schedule, stage, {4, 12, v});
      std::set<ScheduledPass> forwards, inputs, weights;
      for (const ScheduledPass& pass : passes) {
        const ScheduledPass key{F, pass.micro_batch, pass.chunk};
        const bool makes_input = pass.direction == PassDirection::input_gradient;
        const bool makes_weight = pass.direction == PassDirection::weight_gradient;
        const bool forward = pass.direction == F;
        const bool first_time = (!forward || forwards.insert(key).second) &&
                                (forward || makes_weight || inputs.insert(key).second) &&
                                (forward || makes_input || weights.insert(key).second);
        EXPECT_TRUE(first_time && forwards.contains(key) && (forward || inputs.contains(key)));
      }
      EXPECT_EQ(forwards.size(), static_cast<std::size_t>(12 * v));
      EXPECT_EQ(weights, forwards);
      EXPECT_EQ(inputs, forwards);
    }
  }
}

}  // namespace
}  // namespace tessera
