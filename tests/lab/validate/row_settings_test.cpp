#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/scenario_source.h"
#include "tests/lab/validate/one_row.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera {
namespace {

using test::llama_row;
using test::scenario_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario with(const std::string& settings, test::Fields changes = {}) {
  changes["settings"] = settings;
  return scenario_of(test::read_row(llama_row(changes)).runs.at(0));
}

std::string refusal(const std::string& settings) {
  try {
    with(settings);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RowSettings, ThatChangeNothingLeaveTheScenarioAsItIs) {
  const Scenario plain = with("");
  const Scenario same = with("training.sequence_length=1024");
  EXPECT_EQ(identifying_bytes(plain), identifying_bytes(same));
}

TEST(RowSettings, AreAppliedLast) {
  const Scenario scenario = with(
      "training.recompute=full training.data_parallel.overlap_gradients=true "
      "training.recompute=none training.framework.overlap_tensor_products=true");
  EXPECT_EQ(scenario.step.recompute, Recompute::none);
  EXPECT_TRUE(scenario.step.data_parallel.overlap_gradients);
  EXPECT_TRUE(scenario.step.framework.overlap_tensor_products);
}

TEST(RowSettings, SayLayoutsOfLayersAndRecomputedBlocks) {
  const test::Fields pipeline{{"n_gpus", "4"}, {"pp", "4"}, {"dp", "1"}, {"layers", "7"}};
  EXPECT_THAT(with("parallelism.layers_per_stage=[1,2,2,2]", pipeline).step.split.layers_per_stage,
              ElementsAre(1, 2, 2, 2));
  EXPECT_EQ(with("memory.planner=megatron_block").memory.planner, MemoryPlanner::megatron_block);
}

TEST(RowSettings, WhatFollowsFromOthersFollowsFromTheSettings) {
  const Scenario scenario = with("training.precision=fp16 training.framework=fsdp");
  EXPECT_EQ(scenario.step.framework.name, "fsdp");
  EXPECT_EQ(scenario.step.formats, scenario.step.framework.formats(Precision::fp16));
  EXPECT_EQ(scenario.step.data_parallel.bucket, scenario.step.framework.data_parallel.bucket);
  EXPECT_EQ(
      with("parallelism.virtual_stages=2 parallelism.pipeline=2 parallelism.data=4").step.schedule,
      PipelineSchedule::interleaved_1f1b);
}

TEST(RowSettings, KeepTheTunerOfOlderRuns) {
  const Scenario old =
      with("training.recompute=full",
           {{"gpu", "A100-SXM4-80GB"}, {"framework", "Megatron-DeepSpeed"}, {"precision", "fp16"}});
  EXPECT_EQ(old.collectives.tuner, NcclTuner::v2_8);
}

TEST(RowSettings, WithAMistakeAreRefusedByName) {
  EXPECT_THAT(refusal("training.recompute=some"), HasSubstr("training.recompute"));
  EXPECT_THAT(refusal("training.recompte=full"), HasSubstr("training.recompte"));
  EXPECT_THAT(refusal("full"), HasSubstr("has no '='"));
}

TEST(RowSettings, DoNotMakeTheRowAnotherJob) {
  EXPECT_THAT(refusal("parallelism.data=4"), HasSubstr("n_gpus = 8"));
  EXPECT_THAT(refusal("cluster=dgx-a100"), HasSubstr("the row H100-SXM5-80GB"));
}

}  // namespace
}  // namespace tessera
