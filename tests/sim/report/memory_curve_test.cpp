#include <gtest/gtest.h>

#include "sim/report/text/memory_plan_text.h"
#include "tests/sim/trace/handmade_step.h"

namespace tessera {
namespace {

MemoryPlanReport plan_of(Bytes budget, std::optional<Seconds> time, const PlannedSteps& steps) {
  return {.scenario = "one",
          .planner = "tessera",
          .budget = budget,
          .steps = &steps,
          .base_time = 1_s,
          .planned_time = time,
          .simulated_time = time};
}

PlannedSteps steps_of(Bytes budget) {
  PlannedSteps steps{.base = testing::handmade_program({}),
                     .planned = testing::handmade_program({}),
                     .memory = {}};
  steps.memory.budget = budget;
  return steps;
}

TEST(MemoryCurve, AWiderBudgetTakesTheFastestPlanOfAllTighterOnes) {
  const PlannedSteps first = steps_of(1_GiB), second = steps_of(2_GiB), third = steps_of(3_GiB),
                     fourth = steps_of(4_GiB);
  std::vector<MemoryPlanReport> curve = {
      plan_of(1_GiB, std::nullopt, first), plan_of(2_GiB, 3_s, second), plan_of(3_GiB, 4_s, third),
      plan_of(4_GiB, std::nullopt, fourth), plan_of(5_GiB, 2_s, first)};
  keep_fastest_of_tighter(curve);
  EXPECT_FALSE(curve[0].simulated_time.has_value());
  EXPECT_EQ(curve[1].simulated_time, 3_s);
  EXPECT_EQ(curve[2].simulated_time, 3_s);  // 4 s with the plan for 3 GiB
  EXPECT_EQ(curve[3].simulated_time, 3_s);  // no plan for 4 GiB
  EXPECT_EQ(curve[4].simulated_time, 2_s);
  EXPECT_EQ(curve[3].budget, 4_GiB);
  EXPECT_EQ(curve[3].steps->memory.budget, 2_GiB);
}

}  // namespace
}  // namespace tessera
