#include "workloads/parallel/layer_split.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

StepOptions stages(int count, int virtual_stages = 1) {
  StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 1, 128);
  step.layout.pipeline = count;
  step.layout.virtual_stages = virtual_stages;
  step.global_batch = 2 * count;
  if (virtual_stages > 1) step.schedule = PipelineSchedule::interleaved_1f1b;
  return step;
}

std::optional<std::vector<int>> split(std::int64_t layers, StepOptions step,
                                      const StageSplit& how) {
  step.split = how;
  return layers_of_parts(layers, step);
}

TEST(LayerSplit, IsEvenOverStagesAndChunks) {
  EXPECT_THAT(layers_of_parts(12, stages(4)), Optional(ElementsAre(3, 3, 3, 3)));
  EXPECT_THAT(layers_of_parts(12, stages(2, 3)), Optional(ElementsAre(2, 2, 2, 2, 2, 2)));
  EXPECT_FALSE(layers_of_parts(12, stages(5)));
}

TEST(LayerSplit, CountsEmbeddingAndHeadAsLayers) {
  // Megatron: 30 layers and both as 32 on 4 stages
  const StageSplit both{.embedding_as_layer = true, .head_as_layer = true};
  EXPECT_THAT(split(30, stages(4), both), Optional(ElementsAre(7, 8, 8, 7)));
  EXPECT_THAT(split(14, stages(2, 2), both), Optional(ElementsAre(3, 4, 4, 3)));
  EXPECT_THAT(split(31, stages(4), {.embedding_as_layer = true}),
              Optional(ElementsAre(7, 8, 8, 8)));
  EXPECT_FALSE(split(32, stages(4), both));
}

TEST(LayerSplit, GivesTheEndsTheirOwnNumbers) {
  EXPECT_THAT(split(30, stages(4), {.first_stage_layers = 6, .last_stage_layers = 4}),
              Optional(ElementsAre(6, 10, 10, 4)));
  EXPECT_THAT(split(10, stages(2, 2), {.first_stage_layers = 4}),
              Optional(ElementsAre(2, 3, 2, 3)));
  EXPECT_FALSE(split(30, stages(4), {.first_stage_layers = 7}));
}

/// Layers whose kernels a stage runs.
std::set<int> layers_of(const RankProgram& stage) {
  std::set<int> layers;
  for (const ProgramOp& op : stage.ops)
    if (op.kind == OpKind::kernels && op.layer >= 0) layers.insert(op.layer);
  return layers;
}

// Parts 0 and 3 of the V are stage 0's, 1 and 2 stage 1's.
TEST(LayerSplit, NumbersOfAVAreThoseOfItsPartsInOrder) {
  StepOptions step = stages(2, 2);
  step.schedule = PipelineSchedule::zbv;
  step.split.layers_per_stage = {1, 2, 3, 4};
  ModelSpec model = test::gpt2_large();
  model.layers = 10;
  const Program program = build_program(model, step);
  EXPECT_THAT(layers_of(program.stages[0]), ElementsAre(0, 6, 7, 8, 9));
  EXPECT_THAT(layers_of(program.stages[1]), ElementsAre(1, 2, 3, 4, 5));
}

TEST(LayerSplit, TakesAnyNumbersThatAddUp) {
  EXPECT_THAT(split(9, stages(3), {.layers_per_stage = {0, 5, 4}}), Optional(ElementsAre(0, 5, 4)));
  EXPECT_FALSE(split(9, stages(3), {.layers_per_stage = {4, 5}}));
  EXPECT_FALSE(split(9, stages(3), {.layers_per_stage = {4, 4, 4}}));
  EXPECT_FALSE(split(9, stages(3), {.layers_per_stage = {5, 0, 4}}));  // a stage without work
}

TEST(LayerSplit, DecidesWhatStagesHold) {
  ModelSpec model = test::gpt2_large();
  model.layers = 9;
  StepOptions step = stages(3);
  step.split.layers_per_stage = {0, 5, 4};
  const Program program = build_program(model, step);
  const std::int64_t h = model.hidden;
  const std::int64_t layer = 12 * h * h + 13 * h;
  const std::int64_t table = 50304 * h;  // padded to a multiple of 128
  EXPECT_EQ(program.stages[0].parameters, table + 1024 * h);
  EXPECT_EQ(program.stages[1].parameters, 5 * layer);
  EXPECT_EQ(program.stages[2].parameters, 4 * layer + 2 * h + table);
}

TEST(LayerSplit, ThatDoesNotFitIsExplained) {
  ModelSpec model = test::gpt2_large();
  const auto error_of = [&](const StageSplit& how) {
    StepOptions step = stages(4);
    step.split = how;
    return test::refusal(model, step);
  };
  EXPECT_THAT(
      error_of({.layers_per_stage = {9, 9, 9}}),
      HasSubstr("parallelism.layers_per_stage: 3 numbers that sum to 27 for 36 layers on 4"));
  EXPECT_THAT(error_of({.first_stage_layers = 8}), HasSubstr("no multiple of their model chunks"));
  EXPECT_EQ(error_of({.first_stage_layers = 6, .last_stage_layers = 10}), "");
}

}  // namespace
}  // namespace tessera
