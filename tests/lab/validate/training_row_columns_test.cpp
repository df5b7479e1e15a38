#include "lab/validate/runs/training_row_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/lab/validate/one_row.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera {
namespace {

using test::llama_row;
using test::obstacle;
using test::read_row;
using test::scenario_of;
using ::testing::HasSubstr;

TrainingRun run_of(const test::Fields& changes) {
  return read_row(llama_row(changes)).runs.at(0);
}

TEST(TrainingColumns, WhatSaysNothingOfTheStepIsHarmless) {
  EXPECT_EQ(obstacle({{"url", "x"}, {"quality", "A"}, {"recipe", "y"}, {"notes", "z"}}), "");
  EXPECT_EQ(obstacle({{"kind", "pretraining"}, {"outcome", "ok"}, {"window", "0"}}), "");
}

TEST(TrainingColumns, AnUnknownColumnSkipsTheRowsThatStateSomethingInIt) {
  EXPECT_EQ(obstacle({{"colour", ""}}), "");
  EXPECT_THAT(obstacle({{"colour", "red"}}), HasSubstr("column colour is not known"));
  const TrainingRuns runs = read_row(llama_row({{"colour", "red"}}), {.ignored = {"colour"}});
  EXPECT_EQ(runs.runs.size(), 1u);
}

TEST(TrainingColumns, AColumnThatIsReadCannotBeIgnored) {
  try {
    read_row(llama_row({}), {.ignored = {"colour", "all_reduce_GBps"}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--ignore all_reduce_GBps: is a column that is read"));
    EXPECT_THAT(error.what(), HasSubstr("--corrections"));
  }
}

TEST(TrainingColumns, WhatTheSimulationLacksIsNamedWithItsValue) {
  EXPECT_THAT(obstacle({{"kind", "lora"}}), HasSubstr("lora is not simulated without lora_rank"));
  EXPECT_THAT(obstacle({{"outcome", "hang"}}), HasSubstr("outcome = hang"));
  EXPECT_THAT(obstacle({{"dispatcher", "pplx"}}), HasSubstr("dispatcher = pplx"));
  EXPECT_THAT(obstacle({{"precision", "fp8"}, {"fp8_recipe", "mxfp8 experts"}}),
              HasSubstr("fp8_recipe = mxfp8 experts"));
  EXPECT_THAT(obstacle({{"activation", "mish"}}), HasSubstr("activation = mish"));
}

TEST(TrainingColumns, LettersSayWhichLayersAStageHas) {
  const auto with = [](test::Fields fields) {
    fields.insert({{"pp", "2"}, {"dp", "4"}});
    return fields;
  };
  const StepOptions cut = scenario_of(run_of(with({{"pp_layout", "Et*4m|L"}}))).step;
  EXPECT_EQ(cut.split.layers_per_stage, (std::vector<int>{4, 0}));
  EXPECT_TRUE(cut.split.mtp_ahead);
  const Scenario beside = scenario_of(run_of(with({{"pp_layout", "Et*3|tmmL"}})));
  EXPECT_FALSE(beside.step.split.mtp_ahead);
  EXPECT_EQ(beside.model.mtp_layers, 2);
  EXPECT_THAT(obstacle(with({{"pp_layout", "Et*3|tmL"}, {"mtp_layers", "2"}})),
              HasSubstr("mtp_layers has another number"));
  EXPECT_THAT(obstacle(with({{"pp_layout", "Et*3|tx|L"}})), HasSubstr("'x' is no part"));
}

TEST(TrainingColumns, ColumnsThatContradictEachOtherAreNotGuessedAt) {
  EXPECT_THAT(obstacle({{"outcome", "oom"}}), HasSubstr("oom with a step time"));
  EXPECT_THAT(obstacle({{"recompute", "full"}, {"recompute_modules", "core_attn"}}),
              HasSubstr("recompute_modules = core_attn with recompute = full"));
  EXPECT_THAT(obstacle({{"fsdp", "1"}, {"zero_stage", "1"}}), HasSubstr("fsdp = 1 with"));
  EXPECT_THAT(obstacle({{"fp8_recipe", "current scaling"}}), HasSubstr("precision = bf16"));
  EXPECT_THAT(obstacle({{"attention", "mla"}}), HasSubstr("mla without kv_lora_rank"));
  EXPECT_THAT(obstacle({{"attention", "mla"},
                        {"kv_lora_rank", "512"},
                        {"qk_nope_head_dim", "128"},
                        {"qk_rope_head_dim", "64"},
                        {"v_head_dim", "128"},
                        {"head_dim", "96"}}),
              HasSubstr("head_dim = 96"));
  EXPECT_THAT(obstacle({{"attention", "gqa"}, {"kv_lora_rank", "512"}}),
              HasSubstr("kv_lora_rank = 512 with attention = gqa"));
  EXPECT_THAT(obstacle({{"micro_batches", "4"}}), HasSubstr("micro_batches = '4'"));
  EXPECT_THAT(obstacle({{"family", "gpt"}, {"gated_mlp", "1"}, {"activation", "gelu"}}),
              HasSubstr("contradict"));
}

TEST(TrainingColumns, AMalformedRowIsSkippedOrEndsTheReading) {
  EXPECT_THAT(obstacle({{"layers", "many"}}), HasSubstr("layers = 'many'; give a whole number"));
  EXPECT_THROW(read_row(llama_row({{"layers", "many"}})), InputError);
}

TEST(TrainingColumns, SayWhatCountsAsALayer) {
  const Scenario scenario = scenario_of(run_of({{"layers", "6"},
                                                {"n_gpus", "4"},
                                                {"pp", "4"},
                                                {"dp", "1"},
                                                {"embedding_as_layer", "1"},
                                                {"head_as_layer", "1"}}));
  EXPECT_TRUE(scenario.step.split.embedding_as_layer);
  EXPECT_TRUE(scenario.step.split.head_as_layer);
  EXPECT_TRUE(scenario.step.split.layers_per_stage.empty());
}

TEST(TrainingColumns, RowsOfMegatronBridgeHaveItsRecipesLossAndItsLaunchersQueues) {
  const auto profile = [](const std::string& framework, int tensor) {
    return scenario_of(run_of({{"framework", framework},
                               {"tp", std::to_string(tensor)},
                               {"dp", std::to_string(8 / tensor)}}))
        .step.framework;
  };
  const FrameworkProfile bridge = profile("Megatron-Bridge 26.02", 1);
  EXPECT_EQ(bridge.loss_fusion, LossFusion::te);
  EXPECT_TRUE(bridge.fused_router);
  EXPECT_EQ(bridge.cuda_device_max_connections, 8);
  EXPECT_EQ(profile("Megatron-Bridge 26.02", 2).cuda_device_max_connections, 0);
  EXPECT_EQ(profile("Megatron-Core 0.12", 1).loss_fusion, LossFusion::separate);
}

TEST(TrainingColumns, SayFormatsScalingBucketsAndOverlaps) {
  const Scenario scenario = scenario_of(run_of({{"precision", "fp8"},
                                                {"fp8_recipe", "current scaling, per tensor"},
                                                {"grad_reduce_dtype", "bf16"},
                                                {"ddp_bucket_MB", "25"},
                                                {"tp_async", "0"},
                                                {"head_dim", "128"},
                                                {"optimizer", "LAMB"}}));
  EXPECT_EQ(scenario.step.framework.fp8_scaling, Fp8Scaling::current);
  EXPECT_EQ(scenario.step.formats.reduce, Precision::bf16);
  EXPECT_EQ(scenario.step.formats.gradients, Precision::bf16) << "Megatron's buffer is one";
  EXPECT_EQ(scenario.step.data_parallel.bucket, 25_MiB);
  EXPECT_FALSE(scenario.step.framework.overlap_tensor_gradients);
  EXPECT_EQ(scenario.model.head_dim, 128);
  EXPECT_EQ(scenario.step.optimizer, OptimizerKind::lamb);
}

TEST(TrainingColumns, NanotronFillsStagesByCostWhetherOrNotTheyDivideTheLayers) {
  const auto layers = [](const char* framework) {
    return scenario_of(
               run_of({{"framework", framework}, {"layers", "10"}, {"pp", "4"}, {"dp", "2"}}))
        .step.split.layers_per_stage;
  };
  EXPECT_TRUE(layers("nanotron").empty());
  EXPECT_EQ(layers("Megatron-Core 0.12"), (std::vector<int>{3, 3, 2, 2}));
}

TEST(TrainingColumns, BucketsOfPyTorchCountGradientsAndHoldTheirSums) {
  const auto bucket = [](const char* framework) {
    return scenario_of(run_of({{"framework", framework}, {"ddp_bucket_MB", "25"}}))
        .step.data_parallel.bucket;
  };
  EXPECT_EQ(bucket("nanotron"), 50_MiB);  // fp32 sums of bf16 gradients
  EXPECT_EQ(bucket("Megatron-Core 0.12"), 25_MiB);
}

/// DeepSeek-V2's sizes in four layers.
TEST(TrainingColumns, SayLatentAttentionSharedExpertsAndDenseLayers) {
  const Scenario scenario = scenario_of(run_of({{"family", "moe"},
                                                {"gated_mlp", "1"},
                                                {"attention", "mla"},
                                                {"q_lora_rank", "1536"},
                                                {"kv_lora_rank", "512"},
                                                {"qk_nope_head_dim", "128"},
                                                {"qk_rope_head_dim", "64"},
                                                {"v_head_dim", "128"},
                                                {"experts", "160"},
                                                {"experts_per_token", "6"},
                                                {"ffn", "1536"},
                                                {"shared_expert_ffn", "3072"},
                                                {"first_dense_layers", "1"},
                                                {"dense_ffn", "12288"},
                                                {"mtp_layers", "0"},
                                                {"ep", "8"}}));
  const ModelSpec& model = scenario.model;
  EXPECT_EQ(model.head_dim, 128 + 64);
  EXPECT_EQ(model.rope_dim, 64);
  EXPECT_EQ(model.v_head_dim, 128);
  EXPECT_EQ(model.q_rank, 1536);
  EXPECT_EQ(model.kv_rank, 512);
  EXPECT_EQ(expert_ffn_of(model), 1536);
  EXPECT_EQ(model.ffn, 12288);
  EXPECT_EQ(model.shared_ffn, 3072);
  EXPECT_EQ(model.dense_layers, 1);
}

TEST(TrainingColumns, SayWhatIsOneCudaGraph) {
  const auto graphs_of = [](const test::Fields& changes) {
    return scenario_of(run_of(changes)).step.framework.cuda_graphs;
  };
  EXPECT_EQ(graphs_of({{"cuda_graph", "none"}}), CudaGraphs::off);
  EXPECT_EQ(graphs_of({{"cuda_graph", "local"}}), CudaGraphs::layers);
  EXPECT_EQ(graphs_of({{"cuda_graph", "transformer_engine"}}), CudaGraphs::layers);
  EXPECT_EQ(graphs_of({{"cuda_graph", "full_iteration"}}), CudaGraphs::full_iteration);
  EXPECT_EQ(graphs_of({{"cuda_graph", "local"}, {"cuda_graph_scope", "full_iteration"}}),
            CudaGraphs::full_iteration);
}

TEST(TrainingColumns, WhatIsLeftOutIsSaidWithTheResult) {
  const auto said = [](const test::Fields& changes) {
    return scenario_of(run_of(changes)).approximations;
  };
  EXPECT_THAT(said({}), ::testing::IsEmpty());
  EXPECT_THAT(said({{"dispatcher", "alltoall"}, {"ep_overlap", "0"}, {"offload_layers", "0"}}),
              ::testing::IsEmpty());
  EXPECT_THAT(said({{"fp8_attention", "1"}}),
              ::testing::ElementsAre(HasSubstr("fp8_attention = 1")));
}

TEST(TrainingColumns, SayHowExpertsTravelWhatWaitsAndWhatGraphsHold) {
  const test::Fields mixture{{"family", "moe"},
                             {"gated_mlp", "1"},
                             {"layers", "24"},
                             {"experts", "8"},
                             {"experts_per_token", "2"},
                             {"ep", "8"},
                             {"dispatcher", "hybridep"},
                             {"ep_overlap", "1"},
                             {"cuda_graph", "transformer_engine"},
                             {"cuda_graph_scope", "attn moe_router"},
                             {"recompute", "selective"},
                             {"recompute_modules", "moe_act layernorm"}};
  const StepOptions step = scenario_of(run_of(mixture)).step;
  EXPECT_EQ(step.framework.expert_dispatcher, ExpertDispatcher::hybridep);
  EXPECT_TRUE(step.framework.overlap_experts);
  EXPECT_EQ(step.framework.cuda_graphs, CudaGraphs::layers);
  EXPECT_THAT(step.framework.graph_modules, ::testing::ElementsAre("attn", "moe_router"));
  EXPECT_THAT(step.recompute_modules, ::testing::ElementsAre("moe_act", "layernorm"));
  const StepOptions other =
      scenario_of(run_of({{"layers", "24"}, {"offload_layers", "4"}, {"cuda_graph", "none"}})).step;
  EXPECT_EQ(other.offload_layers, 4);
  EXPECT_EQ(other.framework.cuda_graphs, CudaGraphs::off);
}

TEST(TrainingColumns, AGpuIsFoundByTheBeginningOfItsIdWhereOneAloneBeginsSo) {
  const Scenario scenario = scenario_of(run_of({{"gpu", "B300-SXM"}}));
  EXPECT_EQ(scenario.cluster.node.gpu.id, "B300-SXM-288GB");
  EXPECT_THROW(scenario_of(run_of({{"gpu", "A100-SXM4"}})), InputError) << "40 or 80 GB";
}

TEST(TrainingColumns, GatedExpertsOfFamilyMoeAreThoseOfALlama) {
  const ModelSpec gated = scenario_of(run_of({{"family", "moe"},
                                              {"gated_mlp", "1"},
                                              {"experts", "8"},
                                              {"experts_per_token", "2"},
                                              {"ep", "8"},
                                              {"qk_norm", "1"}}))
                              .model;
  EXPECT_EQ(gated.family, ModelFamily::llama);
  EXPECT_EQ(gated.activation, Activation::swiglu);
  EXPECT_TRUE(gated.qk_norm);
  EXPECT_FALSE(gated.tied_embeddings);
  EXPECT_EQ(gated.hidden_dropout, 0);
  const ModelSpec plain =
      scenario_of(
          run_of({{"family", "moe"}, {"experts", "8"}, {"experts_per_token", "2"}, {"ep", "8"}}))
          .model;
  EXPECT_EQ(plain.family, ModelFamily::gpt2);
}

TEST(TrainingColumns, ANodeWithoutNvlinkIsNotOneWithIt) {
  EXPECT_THROW(scenario_of(run_of({{"nvlink", "no"}})), InputError);
  EXPECT_NO_THROW(scenario_of(run_of({{"nvlink", "nvswitch"}})));
}

TEST(TrainingColumns, ARackThatSharesNvlinkIsOneNode) {
  const test::Fields rack{{"n_gpus", "16"}, {"dp", "16"}, {"global_batch", "16"}};
  EXPECT_EQ(scenario_of(run_of(rack)).cluster.node_count, 2);
  test::Fields one = rack;
  one["nvlink_domain"] = "72";
  EXPECT_EQ(scenario_of(run_of(one)).cluster.node_count, 1);
}

TEST(TrainingColumns, ImagesTakeLarsWhereTheRowSaysSo) {
  const Scenario scenario = scenario_of(run_of(
      {{"family", "cnn"}, {"model", "ResNet50"}, {"framework", "DLPerf"}, {"optimizer", "lars"}}));
  EXPECT_EQ(scenario.step.optimizer, OptimizerKind::lars);
}

}  // namespace
}  // namespace tessera
