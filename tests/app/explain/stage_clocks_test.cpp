#include "app/explain/stage_clocks.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"
#include "tests/app/explain/shipped.h"

namespace tessera {
namespace {

using test::shipped_configs;
using test::trained;

Scenario pipeline(const std::vector<std::string>& overrides) {
  return load_scenario("gpt2-large_4xa100_pp4", overrides, shipped_configs());
}

TEST(StageClocks, AStageWithFewLayersRunsSlowerAndTheStepHardlyTakesLonger) {
  // The second stage has 5 of 36 layers, the last two 23 and the head: it waits for most of the
  // step.
  const Scenario uneven = pipeline({"parallelism.layers_per_stage=[8, 5, 12, 11]",
                                    "training.global_batch=64", "training.micro_batches=16"});
  const ClockPlan plan = plan_clocks(uneven, trained(), 0.01);
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_LE(plan.stages[1].clock, 0.75);
  EXPECT_EQ(plan.stages[3].clock, 1);
  EXPECT_LE(plan.scheduled_step.value(), plan.step.value() * 1.01);
  EXPECT_LT(plan.scheduled_j(), 0.98 * plan.energy_j());
}

TEST(StageClocks, BetweenFillAndDrainAWaitingStageSlowsNobody) {
  const Scenario uneven = pipeline({"parallelism.layers_per_stage=[8, 5, 12, 11]",
                                    "training.global_batch=64", "training.micro_batches=16"});
  const ClockPlan plan = plan_clocks(uneven, trained(), 0);
  EXPECT_NEAR(plan.scheduled_step / plan.step, 1, 1e-8);  // no longer step
  EXPECT_EQ(plan.spared, 4);
  EXPECT_LT(plan.stages[1].clock, 1);
  // Of 16 forward and 16 backward passes 4 each keep the clock.
  EXPECT_NEAR(plan.stages[1].slowed, 0.75, 0.01);
  EXPECT_LT(plan.scheduled_j(), plan.energy_j());
  EXPECT_THAT(table_text(plan), testing::HasSubstr("first 4 forward and last 4 backward"));
}

TEST(StageClocks, EnergyAtTheFullClockIsThatOfTheReport) {
  const Scenario scenario = pipeline({});
  const ClockPlan plan = plan_clocks(scenario, trained(), 0);
  const double gpus_j = forked([&] { return run_step(scenario, trained()).report.energy->gpus_j; });
  EXPECT_NEAR(plan.energy_j() / gpus_j, 1, 1e-9);
}

TEST(StageClocks, WithoutAPipelineNobodyWaits) {
  const Scenario alone = load_scenario("gpt2-large_4xa100_tp4", {}, shipped_configs());
  EXPECT_THROW(plan_clocks(alone, trained(), 0), InputError);
  EXPECT_THROW(
      plan_clocks(pipeline({"perturbation.gpus=[{stages: 0, slowdown: 2}]"}), trained(), 0),
      InputError);
}

}  // namespace
}  // namespace tessera
