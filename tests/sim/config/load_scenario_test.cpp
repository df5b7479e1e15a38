#include <gmock/gmock.h>

#include "sim/config/fields/convert.h"
#include "sim/config/scenario_source.h"
#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using LoadScenario = ConfigTest;

const char* const kDataParallel = "configs/scenarios/gpt2-large_4xh100_dp4.yaml";

TEST_F(LoadScenario, ReadsAScenarioWithItsModelAndItsCluster) {
  const Scenario scenario = load(kDataParallel);
  EXPECT_EQ(scenario.name, "gpt2-large_4xh100_dp4");
  EXPECT_EQ(scenario.model.layers, 36);
  EXPECT_EQ(scenario.model.head_dim, 64);  // 1280 / 20 heads
  EXPECT_EQ(scenario.model.kv_heads, 20);  // = heads
  EXPECT_EQ(scenario.cluster.gpu_count(), 4);
  EXPECT_EQ(scenario.cluster.node.pairs.size(), 6u);  // 4 GPUs, all pairs
  EXPECT_EQ(scenario.cluster.node.gpu.id, "H100-SXM5-80GB");
  EXPECT_EQ(scenario.cluster.node.gpu.fp32, 66.9_TFLOPS);
  EXPECT_EQ(scenario.cluster.node.gpu.l2, 50_MiB);
  EXPECT_EQ(scenario.step.mode, StepMode::training);
  EXPECT_EQ(scenario.step.schedule, PipelineSchedule::one_f_one_b);
  EXPECT_EQ(scenario.step.layout.data, 4);
  EXPECT_EQ(scenario.predictor_form, PredictorForm::tessera);
}

TEST_F(LoadScenario, EveryShippedScenarioLoads) {
  const auto ids = catalog_.ids(CatalogKind::scenarios);
  EXPECT_GE(ids.size(), 6u);
  for (const std::string& id : ids) {
    EXPECT_EQ(load(catalog_.file(CatalogKind::scenarios, id)).name, id);
  }
}

TEST_F(LoadScenario, SaysThatPeftHoldsAdaptersInFp32) {
  const auto said = [this](const std::string& framework, const std::string& precision) {
    return scenario_of(
        std::vector<std::string>{"model=llama-2-7b", "cluster=dgx-h100",
                                 "training.framework=" + framework,
                                 "training.precision=" + precision, "training.global_batch=1",
                                 "training.sequence_length=64", "training.lora_rank=8"},
        "adapters", catalog_);
  };
  const Scenario adapted = said("hf-eager", "bf16");
  ASSERT_EQ(adapted.approximations.size(), 1u);
  EXPECT_THAT(adapted.approximations[0], HasSubstr("peft's default keeps them in fp32"));
  EXPECT_EQ(load(file("again.yaml", resolved_yaml(adapted))).approximations,
            adapted.approximations);
  EXPECT_TRUE(said("hf-eager", "fp32").approximations.empty());
  EXPECT_TRUE(said("megatron", "bf16").approximations.empty());
}

TEST_F(LoadScenario, SaysThatGradientsAreNotSummedBesideBackwardUnderDualpipe) {
  const auto lines = [&](const char* schedule) {
    return load("configs/scenarios/mixtral-8x7b_64xh100_tp2_pp4_ep8_bf16.yaml",
                {"training.data_parallel.overlap_gradients=true",
                 "training.data_parallel.overlap_parameters=true",
                 std::string("training.schedule=") + schedule})
        .approximations;
  };
  EXPECT_THAT(lines("dualpipe"), ElementsAre(HasSubstr("overlap_gradients: ")));
  EXPECT_THAT(lines("1f1b"), IsEmpty());
}

/// A head of 2.1 billion parameters behind nine layers of .24 fills the second of three stages.
TEST_F(LoadScenario, SaysThatNanotronsHeadHasMovedToTheLoss) {
  const auto lines = [&](const char* vocabulary, const char* past_share) {
    return load("configs/scenarios/llama-3-8b_8xh100_tp8_bf16.yaml",
                {"training.framework=nanotron", "model.layers=9", "parallelism.tensor=2",
                 "parallelism.pipeline=3", std::string("model.vocab=") + vocabulary,
                 std::string("training.framework.fills_past_share=") + past_share})
        .approximations;
  };
  EXPECT_THAT(lines("512000", "false"), Contains(HasSubstr("the head is on the last")));
  EXPECT_THAT(lines("512000", "true"), Not(Contains(HasSubstr("the head is on the last"))));
  EXPECT_THAT(lines("32000", "false"), Not(Contains(HasSubstr("the head is on the last"))));
}

// The rule of equal stages is not theirs.
TEST_F(LoadScenario, StagesThatAreFilledByCostNeedNotDivideTheLayers) {
  const Scenario scenario = load("configs/scenarios/llama-3-8b_8xh100_tp8_bf16.yaml",
                                 {"training.framework=nanotron", "model.layers=10",
                                  "parallelism.tensor=2", "parallelism.pipeline=3"});
  EXPECT_EQ(scenario.step.layout.pipeline, 3);
}

TEST_F(LoadScenario, OverridesReplaceFieldsAndTheLaterOneWins) {
  const Scenario scenario =
      load(kDataParallel, {"parallelism.tensor=2", "parallelism.tensor=4", "parallelism.data=1"});
  EXPECT_EQ(scenario.step.layout.tensor, 4);
  EXPECT_EQ(scenario.step.layout.data, 1);
  EXPECT_EQ(scenario.step.micro_batch, 4);  // global batch 4 on one replica
}

TEST_F(LoadScenario, AnOverrideUnderAnAliasReplacesTheField) {
  const Scenario scenario = load(kDataParallel, {"parallelism.tp=4", "parallelism.dp=1"});
  EXPECT_EQ(scenario.step.layout.tensor, 4);
}

TEST_F(LoadScenario, AdamWIsAdam) {
  EXPECT_EQ(load(kDataParallel, {"training.optimizer=adamw"}).step.optimizer, OptimizerKind::adam);
}

TEST_F(LoadScenario, AnOverrideInsideAReferenceKeepsTheRestOfIt) {
  const Scenario scenario = load(kDataParallel, {"cluster.node.gpu.memory_bandwidth=4 TB/s"});
  EXPECT_DOUBLE_EQ(scenario.cluster.node.gpu.memory_bandwidth.value(), 4e12);
  EXPECT_EQ(scenario.cluster.node.gpu.sm_count, 132);
  EXPECT_EQ(scenario.cluster.node.pairs.size(), 6u);
}

/// RTX 5090 has 170 SMs: peaks that a card of 84 leaves out would be twice its own.
TEST_F(LoadScenario, AGpuWithOtherSmsThanTheOneItExtendsStatesItsOwnPeaks) {
  const auto gpu =
      file("mine.yaml", "extends: RTX-5090\nid: Mine\nsm_count: 84\nfp32: 56 TFLOPS\n");
  const std::string message = message_of([&] {
    load(kDataParallel, {"cluster=rtx-5090-pcie-4", "cluster.node.gpu=" + gpu.string()});
  });
  EXPECT_NE(message.find("sm_count = 84, unlike RTX-5090's: Mine would have its tf32, bf16, fp16, "
                         "fp8, int8, fp4, l2"),
            std::string::npos)
      << message;
}

TEST_F(LoadScenario, AGpuOfTheSameSmsTakesItsPeaksOver) {
  const auto gpu = file("mine.yaml", "extends: RTX-5090\nid: Mine\ntdp: 400 W\n");
  const Scenario scenario =
      load(kDataParallel, {"cluster=rtx-5090-pcie-4", "cluster.node.gpu=" + gpu.string()});
  EXPECT_DOUBLE_EQ(scenario.cluster.node.gpu.bf16.value(), 209.5e12);
}

TEST_F(LoadScenario, AnOverrideMayNameAnotherModel) {
  EXPECT_EQ(load(kDataParallel, {"model=gpt2-xl"}).model.hidden, 1600);
}

TEST_F(LoadScenario, AScenarioMayExtendAnother) {
  const auto path = file("variant.yaml",
                         "extends: gpt2-large_4xh100_dp4\n"
                         "name: larger batch\n"
                         "training: {global_batch: 16, micro_batches: 2}\n");
  const Scenario scenario = load(path);
  EXPECT_EQ(scenario.name, "larger batch");
  EXPECT_EQ(scenario.step.micro_batch, 2);  // 16 sequences / (4 replicas * 2 micro-batches)
  EXPECT_EQ(scenario.step.sequence_length, 1024);
}

TEST_F(LoadScenario, AReferenceStartsAtTheFolderOfTheFileThatNamesIt) {
  file("narrow.yaml", "extends: gpt2-large\nname: narrow\nhidden: 640\nffn: 2560\n");
  const auto path = file("scenario.yaml", "extends: gpt2-large_4xh100_dp4\nmodel: narrow.yaml\n");
  const Scenario scenario = load(path);
  EXPECT_EQ(scenario.model.hidden, 640);
  EXPECT_EQ(scenario.model.head_dim, 32);  // 640 / 20 heads
}

TEST_F(LoadScenario, AHuggingFaceConfigStandsForAModel) {
  file("config.json", R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
                          "vocab_size": 50257, "n_positions": 1024,
                          "activation_function": "gelu_new"})");
  const auto path = file("scenario.yaml", "extends: gpt2-large_4xh100_dp4\nmodel: config.json\n");
  const Scenario scenario = load(path, {"model.layers=6"});
  EXPECT_EQ(scenario.model.hidden, 768);
  EXPECT_EQ(scenario.model.ffn, 3072);  // 4 * 768
  EXPECT_EQ(scenario.model.layers, 6);
}

TEST_F(LoadScenario, AnchorsRepeatAValue) {
  const auto path = file("scenario.yaml",
                         "extends: gpt2-large_4xh100_dp4\n"
                         "training: {sequence_length: &n 512, global_batch: 4}\n"
                         "model: {extends: gpt2-large, max_positions: *n}\n");
  EXPECT_EQ(load(path).model.max_positions, 512);
}

TEST_F(LoadScenario, WithoutANameItIsCalledAfterItsFile) {
  const auto path = file("unnamed.yaml",
                         "model: gpt2\ncluster: hgx-h100-4\n"
                         "training: {sequence_length: 128, global_batch: 2}\n");
  const Scenario scenario = load(path);
  EXPECT_EQ(scenario.name, "unnamed");
  EXPECT_EQ(scenario.step.micro_batches(), 1);
  EXPECT_EQ(scenario.step.framework.name, "megatron-local");
}

TEST_F(LoadScenario, MicroBatchAndMicroBatchesEachFollowFromTheOther) {
  const Scenario by_count =
      load(kDataParallel, {"training.global_batch=32", "training.micro_batches=4"});
  EXPECT_EQ(by_count.step.micro_batch, 2);  // 32 / (4 replicas * 4)
  const auto path = file("scenario.yaml",
                         "model: gpt2\ncluster: hgx-h100-4\n"
                         "training:\n  sequence_length: 128\n"
                         "  global_batch: 32\n  micro_batch: 2\n"
                         "parallelism: {data: 4}\n");
  EXPECT_EQ(load(path).step.micro_batches(), 4);
}

TEST_F(LoadScenario, DerivedMicroBatchesHaveTheRangeOfGivenOnes) {
  const auto path = file("scenario.yaml",
                         "model: gpt2\ncluster: hgx-h100-4\n"
                         "training:\n  sequence_length: 128\n"
                         "  global_batch: 1000000\n  micro_batch: 1\n"
                         "parallelism: {data: 4}\n");
  const std::string problem = message_of([&] { load(path); });
  EXPECT_THAT(problem, HasSubstr("scenario.yaml:5:"));
  EXPECT_THAT(problem, HasSubstr("training.global_batch = 1000000"));
  EXPECT_THAT(problem, HasSubstr("micro_batches = global_batch / (data * micro_batch) = 250000"));
  EXPECT_EQ(load(path, {"training.global_batch=400000"}).step.micro_batches(), 100000);
}

TEST_F(LoadScenario, AnUnknownPlannerOfMemoryIsRefusedAtItsLine) {
  const std::string problem = message_of([&] { load(kDataParallel, {"memory.planner=nonsense"}); });
  EXPECT_THAT(problem, HasSubstr("memory.planner"));
  EXPECT_THAT(problem, HasSubstr("megatron_uniform"));
}

TEST_F(LoadScenario, AStepThatTheFrameworkProfileDoesNotKnowIsRefusedAtItsLine) {
  const auto path = file("scenario.yaml",
                         "model: opt-1.3b\ncluster: hgx-h100-4\n"
                         "training:\n  sequence_length: 128\n"
                         "  global_batch: 2\n  framework: megatron_local\n");
  EXPECT_THAT(message_of([&] { load(path); }), HasSubstr("scenario.yaml:6:3: training.framework"));
}

TEST_F(LoadScenario, TheResolvedScenarioLoadsAgainToAnEqualOne) {
  for (const std::string& id : catalog_.ids(CatalogKind::scenarios)) {
    const Scenario first = load(catalog_.file(CatalogKind::scenarios, id));
    const std::string text = resolved_yaml(first);
    const Scenario second = load(file("resolved.yaml", text));
    EXPECT_EQ(to_message(first).SerializeAsString(), to_message(second).SerializeAsString()) << id;
    EXPECT_EQ(resolved_yaml(second), text) << id;
  }
}

TEST_F(LoadScenario, TheResolvedScenarioNeedsNoCatalog) {
  const auto path = file("resolved.yaml", resolved_yaml(load(kDataParallel)));
  EXPECT_NO_THROW(load_scenario(path, {}, Catalog("nowhere")));
}

TEST_F(LoadScenario, ApproximationsSurviveTheRoundTripAndChangeNoFigure) {
  Scenario scenario = load(kDataParallel);
  const std::string bytes = identifying_bytes(scenario);
  scenario.approximations = {"--mtp-num-layers = 1 is left out", "a: b # c"};
  EXPECT_EQ(load(file("resolved.yaml", resolved_yaml(scenario))).approximations,
            scenario.approximations);
  EXPECT_EQ(identifying_bytes(scenario), bytes);
}

TEST_F(LoadScenario, NamesThatLookLikeOtherYamlSurviveTheRoundTrip) {
  for (const std::string name :
       {"1e3", "null", "~", "a: b # c", "true", "\"quoted\" \\ 'too'", "Zürich", " blanks "}) {
    Scenario scenario = load(kDataParallel);
    scenario.name = name;
    EXPECT_EQ(load(file("resolved.yaml", resolved_yaml(scenario))).name, name);
  }
}

/// Llama 3 8B of torchtitan on eight GPUs.
std::vector<std::string> with_torchtitan(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"model=llama-3-8b",
                                  "cluster=dgx-h100",
                                  "training.global_batch=8",
                                  "training.sequence_length=4096",
                                  "training.framework=torchtitan",
                                  "training.precision=bf16"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(LoadScenario, TorchtitanSharesSequencesWhereverItSharesLayers) {
  const auto shares = [&](const std::vector<std::string>& more) {
    return scenario_of(with_torchtitan(more), "job", catalog_).step.layout.sequence_parallel;
  };
  const std::string kTensor = "parallelism.tensor=8";
  EXPECT_TRUE(shares({kTensor}));
  EXPECT_FALSE(shares({"parallelism.data=8"}));
  EXPECT_FALSE(shares({kTensor, "training.framework=megatron"}));
  EXPECT_THAT(message_of([&] {
                shares({kTensor, "parallelism.sequence_parallel=false"});
              }),
              HasSubstr("torchtitan shares sequences wherever it shares layers"));
}

TEST_F(LoadScenario, TorchtitanHasNoZero1) {
  const std::string kSharding = "training.data_parallel.sharding=";
  const auto load_with = [&](const std::string& sharding, const std::string& framework) {
    return message_of([&] {
      scenario_of(with_torchtitan({"parallelism.data=8", kSharding + sharding,
                                   "training.framework=" + framework}),
                  "job", catalog_);
    });
  };
  EXPECT_THAT(load_with("optimizer", "torchtitan"), HasSubstr("which has no ZeRO-1"));
  EXPECT_EQ(load_with("parameters", "torchtitan"), "");
  EXPECT_EQ(load_with("optimizer", "hf-eager"), "");
}

// DDR5 of twelve channels and 6,400 MT/s is 614 GB/s, HBM of a socket ten times that.
TEST_F(LoadScenario, MemoryOfAHostHasARange) {
  const auto load_with = [&](const std::string& rate) {
    return message_of([&] { load(kDataParallel, {"cluster.node.host_memory_bandwidth=" + rate}); });
  };
  EXPECT_EQ(load_with("614 GB/s"), "");
  EXPECT_THAT(load_with("1e30GB/s"), HasSubstr("host_memory_bandwidth"));
}

// PyTorch's sdpa has kernels without scores there too, which are not simulated; Megatron has none.
TEST_F(LoadScenario, AttentionThatCannotBeFusedWhereSdpaFusesItIsSaid) {
  const auto lines = [this](const char* framework, const char* precision, const char* cluster) {
    return load(kDataParallel,
                {std::string("training.framework=") + framework,
                 std::string("training.precision=") + precision, std::string("cluster=") + cluster})
        .approximations;
  };
  const auto said = Contains(HasSubstr("attention counts with all of its scores"));
  EXPECT_THAT(lines("fsdp", "fp32", "dgx-h100"), said);
  EXPECT_THAT(lines("fsdp", "fp16", "dgx-1-v100"), said);
  EXPECT_THAT(lines("fsdp", "fp16", "dgx-h100"), IsEmpty());
  EXPECT_THAT(lines("hf-eager", "fp32", "dgx-h100"), IsEmpty());
  EXPECT_THAT(lines("megatron", "fp16", "dgx-1-v100"), IsEmpty());
}

}  // namespace
}  // namespace tessera
