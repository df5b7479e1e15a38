#include "sim/plan/memory/memory_plan.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/weights.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "tests/workloads/models.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

/// GPT-2 with few layers on A100s, kernels by the roofline.
Scenario gpt(int tensor, int pipeline, const std::string& planner) {
  ModelSpec model = test::gpt2_large();
  model.layers = 24;
  Scenario scenario{.name = "gpt", .model = model, .cluster = {}, .step = {}};
  const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  scenario.cluster = load_cluster("dgx-a100", catalog);
  scenario.step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 2, 1024));
  scenario.step.layout = {.tensor = tensor, .pipeline = pipeline, .data = 1};
  scenario.step.global_batch = 2 * 4;
  scenario.predictor_form = PredictorForm::roofline;
  scenario.memory.planner = planner;
  scenario.memory.thorough = false;
  return scenario;
}

Bytes activations(const StageMemoryPlan& plan) {
  return plan.base_peak - plan.static_bytes;
}

Bytes share(Bytes bytes, double of) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value()) * of));
}

PlannedSteps planned_at(Scenario scenario, double share_of_activations) {
  scenario.memory.budget = 80_GiB;
  const PlannedSteps whole = plan_step_memory(scenario, PredictorWeights());
  Bytes budget;
  for (const StageMemoryPlan& plan : whole.memory.stages)
    budget = std::max(budget, plan.static_bytes + share(activations(plan), share_of_activations));
  scenario.memory.budget = budget;
  return plan_step_memory(scenario, PredictorWeights());
}

TEST(MemoryPlan, AStepThatFitsIsLeftAlone) {
  Scenario scenario = gpt(1, 1, "tessera");
  const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
  EXPECT_FALSE(steps.memory.stages.at(0).needed);
  EXPECT_EQ(steps.memory.added_time.value(), 0);
  EXPECT_EQ(steps.planned.program.stages[0].ops.size(), steps.base.program.stages[0].ops.size());
}

TEST(MemoryPlan, TheGraphOfAStageHasTheProgramsPeak) {
  Scenario scenario = gpt(1, 1, "none");
  const PlannedSteps steps = planned_at(scenario, 0.99);
  const StageMemoryPlan& plan = steps.memory.stages.at(0);
  // Groups allocate what they make at once, so the graph may count a little more.
  const Bytes peak = steps.memory.budget + plan.missing;
  EXPECT_FALSE(plan.feasible);
  EXPECT_GT(plan.missing, Bytes(0));
  EXPECT_LT(static_cast<double>(peak.value()), 1.05 * static_cast<double>(plan.base_peak.value()));
}

TEST(MemoryPlan, KeepsWithinTheBudgetWhateverThePlannerAndTheLayout) {
  int feasible = 0;
  std::string refusals;
  for (const auto& [tensor, pipeline] : {std::pair{1, 1}, {2, 1}, {1, 4}, {2, 2}}) {
    for (const std::string planner : {"tessera", "megatron_uniform"}) {
      const PlannedSteps steps = planned_at(gpt(tensor, pipeline, planner), 0.8);
      for (const StageMemoryPlan& plan : steps.memory.stages) {
        if (!plan.feasible) refusals += planner + ", " + plan.infeasible + "\n";
      }
      if (!steps.memory.feasible()) continue;  // the loss alone may need more
      ++feasible;
      for (const StageMemoryPlan& plan : steps.memory.stages) {
        EXPECT_LE(plan.planned_peak, steps.memory.budget);
        if (!plan.needed) continue;
        EXPECT_GT(plan.base_peak, steps.memory.budget);
        EXPECT_GE(plan.planned_time, plan.base_time);
      }
    }
  }
  EXPECT_GE(feasible, 4) << refusals;
}

TEST(MemoryPlan, EveryOperatorOfTheStepStillRuns) {
  const PlannedSteps steps = planned_at(gpt(1, 2, "tessera"), 0.5);
  const auto first_runs = [](const TimedProgram& timed, int stage) {
    std::int64_t kernels = 0;
    for (const ProgramOp& op : timed.program.stages[static_cast<std::size_t>(stage)].ops) {
      if (op.kind != OpKind::kernels) continue;
      for (const KernelLaunch& launch : timed.program.segment(op.segment).kernels)
        kernels += launch.recomputed ? 0 : 1;
    }
    return kernels;
  };
  for (int stage = 0; stage < 2; ++stage)
    EXPECT_EQ(first_runs(steps.planned, stage), first_runs(steps.base, stage));
  EXPECT_EQ(steps.planned.program.model_flops, steps.base.program.model_flops);
  EXPECT_GE(steps.planned.program.hardware_flops, steps.base.program.hardware_flops);
}

TEST(MemoryPlan, BelowTheLowerBoundItNamesTheOperatorAndTheMissingBytes) {
  Scenario scenario = gpt(1, 1, "tessera");
  scenario.memory.budget = 2_GiB;  // less than the states alone
  const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
  const StageMemoryPlan& plan = steps.memory.stages.at(0);
  EXPECT_FALSE(steps.memory.feasible());
  EXPECT_GT(plan.missing, Bytes(0));
  EXPECT_NE(plan.infeasible.find("stage 0"), std::string::npos);
  EXPECT_NE(plan.infeasible.find("needs"), std::string::npos);
}

TEST(MemoryPlan, RefusesUnknownPlannersAndASecondOpinion) {
  Scenario scenario = gpt(1, 1, "nobody");
  EXPECT_THROW(plan_step_memory(scenario, PredictorWeights()), InputError);
  scenario.memory.planner = "tessera";
  scenario.step.recompute = Recompute::full;
  EXPECT_THROW(plan_step_memory(scenario, PredictorWeights()), InputError);
}

}  // namespace
}  // namespace tessera
