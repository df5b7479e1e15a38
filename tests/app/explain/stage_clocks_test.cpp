#include "app/explain/stage_clocks.h"

#include <string>
#include <vector>

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

TEST(StageClocks, AStageWithFewLayersRunsSlowerAndTheStepTakesNoLonger) {
  // The second stage has 4 of 36 layers, the others up to 12: it waits two thirds of the time.
  const ClockPlan plan =
      plan_clocks(pipeline({"parallelism.layers_per_stage=[11, 4, 12, 9]"}), trained(), 0.001);
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_LE(plan.stages[1].clock, 0.7);
  EXPECT_LE(plan.scheduled_step.value(), plan.step.value() * 1.001);
  EXPECT_LT(plan.scheduled_j(), plan.energy_j());
  EXPECT_LT(plan.stages[1].scheduled_j, plan.stages[1].energy_j);
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
