#include "lab/validate/models/model_run_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

const Catalog& catalog() {
  static const Catalog shipped(TESSERA_SOURCE_DIR "/configs");
  return shipped;
}

ModelRun single(const std::string& mode) {
  ModelRun run;
  run.where = "runs.csv:2";
  run.gpu = "H100-SXM5-80GB";
  run.parallelism = "single";
  run.model = "gpt2_large";
  run.mode = mode;
  run.seq_len = 1024;
  run.batch = 4;
  return run;
}

ModelRun four_gpus(const ParallelLayout& layout) {
  ModelRun run = single("training");
  run.n_gpus = 4;
  run.parallelism = "of the test";
  run.layout = layout;
  return run;
}

Scenario scenario(const ModelRun& run) {
  return scenario_of_run(run, PredictorForm::tessera, catalog());
}

std::string refusal(const ModelRun& run) {
  try {
    scenario(run);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(ScenarioOfRun, OneGpuTrainsForwardAndBackwardAloneInEagerMode) {
  const Scenario built = scenario(single("training"));
  EXPECT_EQ(built.step.mode, StepMode::forward_backward);
  EXPECT_EQ(built.step.framework.name, "hf-eager");
  EXPECT_EQ(built.step.kernels, KernelMode::eager);
  EXPECT_EQ(built.cluster.gpu_count(), 1);
  EXPECT_EQ(built.model.layers, 36);
}

TEST(ScenarioOfRun, TheFusedSuffixMeansTorchCompile) {
  EXPECT_EQ(scenario(single("inference_fused")).step.kernels, KernelMode::fused);
  EXPECT_EQ(scenario(single("inference_fused")).step.mode, StepMode::inference);
  EXPECT_EQ(scenario(single("training_fused")).step.kernels, KernelMode::fused);
}

TEST(ScenarioOfRun, SeveralGpusRunMegatronsWholeStepOnTheCatalogsServer) {
  const Scenario built = scenario(four_gpus({.tensor = 1, .pipeline = 1, .data = 4}));
  EXPECT_EQ(built.step.mode, StepMode::training);
  EXPECT_EQ(built.step.framework.name, "megatron-local");
  EXPECT_EQ(built.step.micro_batch, 1);  // 4 sequences over 4 replicas
  EXPECT_EQ(built.cluster.id, "hgx-h100-4");
}

TEST(ScenarioOfRun, AServerThatTheCatalogLacksIsBuiltFromTheGpu) {
  ModelRun run = four_gpus({.tensor = 2, .pipeline = 1, .data = 1});
  run.n_gpus = 2;
  const Scenario built = scenario(run);
  EXPECT_EQ(built.cluster.gpu_count(), 2);
  EXPECT_EQ(built.cluster.node.interconnect, GpuInterconnect::direct);
}

TEST(ScenarioOfRun, RefusalsNameTheRowAndTheValue) {
  ModelRun uneven = four_gpus({.tensor = 1, .pipeline = 1, .data = 4});
  uneven.batch = 6;
  EXPECT_THAT(refusal(uneven), ::testing::HasSubstr("runs.csv:2: batch = 6"));
  EXPECT_THAT(refusal(four_gpus({.tensor = 2})), ::testing::HasSubstr("needs 2 GPUs, n_gpus = 4"));
  EXPECT_THAT(refusal(single("guessing")), ::testing::HasSubstr("mode = 'guessing'"));
  ModelRun unknown = single("inference");
  unknown.gpu = "H100-SXM5-80";
  EXPECT_THAT(refusal(unknown), ::testing::HasSubstr("H100-SXM5-80GB"));
}

}  // namespace
}  // namespace tessera
