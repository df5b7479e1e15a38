#include "sim/scenario/rules/check_scenario.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// GPT-2 large on four GPUs, sound.
Scenario sound() {
  Scenario scenario;
  scenario.model = {.name = "gpt2-large",
                    .layers = 36,
                    .hidden = 1280,
                    .heads = 20,
                    .kv_heads = 20,
                    .head_dim = 64,
                    .ffn = 5120,
                    .vocab = 50257,
                    .max_positions = 1024};
  scenario.cluster.id = "four";
  scenario.cluster.node.gpu_count = 4;
  scenario.cluster.node.gpu.id = "gpu";
  scenario.cluster.node.gpu.fp32 = 10_TFLOPS;
  scenario.step.sequence_length = 1024;
  scenario.step.global_batch = 8;
  scenario.step.micro_batch = 1;
  return scenario;
}

std::vector<std::string> paths_of(const Scenario& scenario) {
  std::vector<std::string> paths;
  for (const Problem& problem : check_fields(scenario)) paths.push_back(problem.where);
  return paths;
}

using Paths = std::vector<std::string>;

TEST(CheckScenario, ASoundScenarioHasNoProblem) {
  EXPECT_EQ(paths_of(sound()), Paths{});
}

/// Of what a framework cannot run only where all else holds: nothing is said twice.
TEST(CheckScenario, ComesToTheFrameworkLast) {
  Scenario scenario = sound();
  EXPECT_TRUE(check_scenario(scenario).empty());
  scenario.step.expert_imbalance = 2;
  ASSERT_EQ(check_scenario(scenario).size(), 1U);
  EXPECT_EQ(check_scenario(scenario).front().where, "training.expert_imbalance");
  EXPECT_TRUE(check_fields(scenario).empty());
  scenario.step.layout.tensor = 3;
  ASSERT_EQ(check_scenario(scenario).size(), 1U);
  EXPECT_EQ(check_scenario(scenario).front().where, "parallelism.tensor");
  EXPECT_THROW(require_sound(scenario), InputError);
}

/// Where of a framework's rules; one problem is expected.
std::string framework_problem_of(const Scenario& scenario) {
  const std::vector<Problem> problems = check_framework(scenario);
  return problems.size() == 1 ? problems.front().where : std::to_string(problems.size());
}

TEST(CheckScenario, WhatIsOfExpertsOrAdaptersThatThereAreNotIsRefused) {
  Scenario scenario = sound();
  scenario.step.expert_capacity_factor = 1;
  EXPECT_EQ(framework_problem_of(scenario), "training.expert_capacity_factor");
  scenario = sound();
  scenario.step.lora_targets = LoraTargets::attention;
  EXPECT_EQ(framework_problem_of(scenario), "training.lora_targets");
}

/// One hint asked for virtual_stages: 2, the next one for torchtitan, that one for Megatron again.
TEST(CheckScenario, AScheduleThatNoLayoutOfTheModelHasIsRefusedOnce) {
  Scenario scenario = sound();
  scenario.step.framework.modules = ModuleTree::megatron;
  scenario.step.layout.pipeline = 4;
  EXPECT_TRUE(check_scenario(scenario).empty());
  scenario.step.schedule = PipelineSchedule::zbv;
  const std::vector<Problem> problems = check_scenario(scenario);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().where, "training.schedule");
  EXPECT_EQ(problems.front().hint, "use schedule: zb_h1, of framework: megatron");
}

TEST(CheckScenario, ScalesPerBlockAreForBlackwell) {
  Scenario scenario = sound();
  scenario.cluster.node.gpu.bf16 = scenario.cluster.node.gpu.fp8 = 100_TFLOPS;
  scenario.step.precision = Precision::fp8;
  scenario.step.framework.fp8_scaling = Fp8Scaling::mxfp8;
  for (const Architecture older : {Architecture::ada, Architecture::hopper}) {
    scenario.cluster.node.gpu.architecture = older;
    EXPECT_EQ(paths_of(scenario), Paths{"training.framework.fp8_scaling"});
  }
  for (const Architecture newer : {Architecture::blackwell, Architecture::blackwell_ultra}) {
    scenario.cluster.node.gpu.architecture = newer;
    EXPECT_EQ(paths_of(scenario), Paths{});
  }
  scenario.cluster.node.gpu.architecture = Architecture::hopper;
  scenario.step.precision = Precision::bf16;
  EXPECT_EQ(paths_of(scenario), Paths{});
}

TEST(CheckScenario, ScalesPerTileAreForHopperAndTransformerEngine) {
  Scenario scenario = sound();
  scenario.cluster.node.gpu.bf16 = scenario.cluster.node.gpu.fp8 = 100_TFLOPS;
  scenario.cluster.node.gpu.architecture = Architecture::hopper;
  scenario.step.precision = Precision::fp8;
  scenario.step.framework.fp8_scaling = Fp8Scaling::blockwise;
  scenario.step.framework.transformer_engine = true;
  EXPECT_EQ(paths_of(scenario), Paths{});
  for (const Architecture other : {Architecture::ada, Architecture::blackwell}) {
    scenario.cluster.node.gpu.architecture = other;
    EXPECT_EQ(paths_of(scenario), Paths{"training.framework.fp8_scaling"});
  }
  scenario.cluster.node.gpu.architecture = Architecture::hopper;
  scenario.step.framework.transformer_engine = false;
  EXPECT_EQ(paths_of(scenario), Paths{"training.framework.fp8_scaling"});
}

TEST(CheckScenario, TheValuesThatItProposesAreExactlyThoseThatItAccepts) {
  Scenario scenario = sound();
  scenario.cluster.node.gpu_count = 64;
  std::string accepted;
  for (int tensor = 1; tensor <= 64; ++tensor) {
    scenario.step.layout.tensor = tensor;
    if (paths_of(scenario).empty()) accepted += " " + std::to_string(tensor);
  }
  EXPECT_EQ(accepted, " 1 2 4 5 10 20");  // divisors of 20 heads; all divide ffn = 5120
  scenario.step.layout.tensor = 3;
  EXPECT_EQ(check_fields(scenario).front().hint, "use 1, 2, 4, 5, 10 or 20");
}

TEST(CheckScenario, FamiliesWithAlibiHaveNoPositionsGroupedQueriesOrExperts) {
  for (const ModelFamily family : {ModelFamily::bloom, ModelFamily::mpt}) {
    Scenario scenario = sound();
    scenario.model.family = family;
    EXPECT_EQ(paths_of(scenario), Paths{"model.max_positions"});
    EXPECT_EQ(check_fields(scenario).front().hint, "leave it out, or use model.family: gpt2");
    scenario.model.max_positions = 0;
    EXPECT_EQ(paths_of(scenario), Paths{});
    scenario.model.kv_heads = 4;
    scenario.model.experts = 8;
    EXPECT_EQ(paths_of(scenario), (Paths{"model.kv_heads", "model.experts"}));
  }
}

TEST(CheckScenario, GroupedQueriesLimitTheTensorSizeToTheKeyValueHeads) {
  Scenario scenario = sound();
  scenario.model.kv_heads = 2;
  scenario.step.layout.tensor = 4;
  EXPECT_EQ(check_fields(scenario).front().what,
            "parallelism.tensor = 4 does not divide kv_heads = 2");
}

TEST(CheckScenario, TheJobMayUseFewerGpusThanTheClusterHasButNotMore) {
  Scenario scenario = sound();
  scenario.step.layout.data = 2;
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario.step.layout.tensor = 4;
  EXPECT_EQ(paths_of(scenario), Paths{"parallelism"});
}

TEST(CheckScenario, HugeSizesDoNotOverflow) {
  Scenario scenario = sound();
  scenario.step.layout = {.tensor = 100'000, .pipeline = 100'000, .data = 100'000};
  const Paths paths = paths_of(scenario);
  EXPECT_NE(std::find(paths.begin(), paths.end(), "parallelism"), paths.end());
}

TEST(CheckScenario, MicroBatchesAreWhole) {
  Scenario scenario = sound();
  scenario.step.micro_batch = 3;  // of 8 sequences
  EXPECT_EQ(paths_of(scenario), Paths{"training.micro_batch"});
  scenario.step.layout.data = 3;
  EXPECT_EQ(paths_of(scenario), Paths{"parallelism.data"});
}

TEST(CheckScenario, SequencesFitTheLearnedPositionsWhereThereAreAny) {
  Scenario scenario = sound();
  scenario.step.sequence_length = 1025;
  EXPECT_EQ(paths_of(scenario), Paths{"training.sequence_length"});
  scenario.model.max_positions = 0;
  EXPECT_EQ(paths_of(scenario), Paths{});
}

TEST(CheckScenario, ThePrecisionIsOneThatTheGpuComputes) {
  Scenario scenario = sound();
  scenario.step.precision = Precision::bf16;
  EXPECT_EQ(check_fields(scenario).front().hint, "it has fp32");
}

TEST(CheckScenario, FieldsThatTheSchemaRefusesMakeNoProblemHere) {
  EXPECT_NO_THROW(check_scenario(Scenario()));
}

}  // namespace
}  // namespace tessera
