#include "lab/validate/runs/training_run_scenario.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/box.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"
#include "tests/lab/validate/one_row.h"
#include "tests/lab/validate/shipped_rows.h"
#include "tests/lab/validate/training_run_rows.h"

namespace tessera {
namespace {

using test::read;
using test::row;
using test::scenario_of;
using test::shipped_configs;
using ::testing::HasSubstr;

TEST(ReadTrainingRuns, ColumnsOfZeroAndOneTakeNothingElse) {
  try {
    read(row("a", "Megatron-LM v2.0", "fp16", "gpt", "full", "2", ",,"));
    FAIL() << "flash_attention = 2 was accepted";
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_THAT(error.problems()[0].where, HasSubstr(".csv:2"));
    EXPECT_EQ(error.problems()[0].what, "flash_attention = '2'");
    EXPECT_EQ(error.problems()[0].hint, "give 0 or 1");
  }
}

TEST(ReadTrainingRuns, EmbeddingsAreTiedWhereTheFamilyTiesThem) {
  for (const auto& [family, tied] : {std::pair{"gpt", true}, {"llama", false}}) {
    std::string text = row("a", "", "bf16", family, "none", "1", ",,");
    text.replace(text.find("51200,1,"), 8, "51200,,");
    EXPECT_EQ(scenario_of(read(text).runs.at(0)).model.tied_embeddings, tied) << family;
  }
}

TEST(RowFilters, KeepTheRowsThatHoldOneOfTheValues) {
  const RowFilter filter = parse_row_filter("precision=fp16,bf16");
  EXPECT_EQ(filter.column, "precision");
  EXPECT_EQ(filter.values, (std::vector<std::string>{"fp16", "bf16"}));
  EXPECT_EQ(parse_row_filter("notes=").values, std::vector<std::string>{""});
  for (const char* bad : {"", "=1", "dp"}) EXPECT_THROW(parse_row_filter(bad), InputError) << bad;
  const std::string rows = row("a", "hf", "fp16", "gpt", "none", "0", "1,,") +
                           row("b", "hf", "fp32", "gpt", "none", "0", "1,,") +
                           row("c", "hf", "bf16", "gpt", "none", "0", "1,,");
  EXPECT_EQ(read(rows, {filter}).runs.size(), 2u);
  EXPECT_EQ(read(rows, {filter, parse_row_filter("id=c")}).runs.at(0).id, "c");
  EXPECT_THROW(read(rows, {parse_row_filter("id=x")}), InputError);
  EXPECT_THROW(read(rows, {parse_row_filter("colour=red")}), InputError);
}

TEST(ScenarioOfTrainingRun, ColumnsOverrideTheProfilesAttention) {
  const auto attention = [](const char* framework, const char* precision, const char* flash) {
    return scenario_of(read(row("a", framework, precision, "gpt", "none", flash, "1,,")).runs[0])
        .step.framework.attention;
  };
  EXPECT_EQ(attention("NeMo", "bf16", ""), AttentionKernels::flash2);  // on an A100
  EXPECT_EQ(attention("NeMo", "bf16", "0"), AttentionKernels::fused_softmax);
  EXPECT_EQ(attention("Megatron-DeepSpeed", "fp16", "1"), AttentionKernels::flash2);
  EXPECT_EQ(attention("torchtitan", "bf16", "0"), AttentionKernels::unfused);
  EXPECT_EQ(attention("NeMo", "fp32", "1"), AttentionKernels::unfused);
}

/// A GPT of two layers, with `changes`.
Scenario gpt_of(test::Fields changes) {
  for (const auto& [column, value] :
       test::Fields{{"gpu", "A100-SXM4-80GB"}, {"family", "gpt"}, {"layers", "2"}, {"dp", ""}})
    changes.emplace(column, value);
  return scenario_of(test::read_row(test::llama_row(changes)).runs.at(0));
}

TEST(ScenarioOfTrainingRun, TakesAsManyOfTheCatalogsNodesAsTheRunNeeds) {
  const Scenario scenario = gpt_of({{"n_gpus", "32"}, {"tp", "8"}, {"pp", "2"}});
  EXPECT_EQ(scenario.step.layout.data, 2) << "32 GPUs / (8 * 2)";
  EXPECT_EQ(scenario.cluster.node_count, 4);
  EXPECT_EQ(scenario.cluster.node.gpu_count, 8);
  EXPECT_EQ(scenario.cluster.node.gpu.id, "A100-SXM4-80GB");
}

/// The catalog has a workstation with a bridge between two such cards, and servers without.
TEST(ScenarioOfTrainingRun, CardsHaveABridgeOrAHostInBetweenOnlyWhereTheRowSaysSo) {
  for (const std::string gpu : {"RTX-3090", "RTX-A6000", "Quadro-RTX-8000"}) {
    const test::Fields row{{"gpu", gpu}, {"n_gpus", "2"}, {"precision", "fp16"}};
    EXPECT_EQ(gpt_of(row).cluster.node.id, gpu + "-PCIe-4");
    test::Fields bridged = row;
    bridged["settings"] = "cluster.node=" + gpu + "-2-NVLink";
    EXPECT_EQ(gpt_of(bridged).cluster.node.id, gpu + "-2-NVLink");
  }
  EXPECT_EQ(gpt_of({{"n_gpus", "2"}}).cluster.node.id, "DGX-A100") << "boards on NVLink have it";
  const test::Fields l40s{{"gpu", "L40S"}, {"n_gpus", "4"}};
  EXPECT_EQ(gpt_of(l40s).cluster.node.id, "L40S-PCIe-8") << "cards that read each other over PCIe";
}

TEST(ScenarioOfTrainingRun, TheRowsNetworkDecidesTheNics) {
  const auto node = [](const char* rate) {
    return gpt_of({{"n_gpus", "16"}, {"tp", "8"}, {"inter_node_GBps_per_gpu", rate}}).cluster.node;
  };
  EXPECT_EQ(node("").nic_count, 8) << "nothing stated: as a DGX A100";
  EXPECT_EQ(node("").nic_bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(node("6.25").nic_count, 4) << "four NICs of 100 Gb/s";
  EXPECT_EQ(node("6.25").nic_bandwidth, BytesPerSecond(12.5e9));
  EXPECT_EQ(node("50").nic_count, 8);
  EXPECT_EQ(node("50").nic_bandwidth, BytesPerSecond(50e9));
}

/// No cluster of the catalog has such a GPU.
TEST(ScenarioOfTrainingRun, ABoardThatNobodyDescribedIsBuiltFromTheGpusLinks) {
  const GpuSpec gpu = load_gpu("A800-SXM4-80GB", shipped_configs());
  for (const int gpus : {1, 4, 8}) {
    const Scenario scenario = gpt_of({{"gpu", gpu.id}, {"n_gpus", std::to_string(gpus)}});
    Scenario expected = scenario;
    expected.cluster = box_of(gpu, gpus);
    EXPECT_EQ(identifying_bytes(scenario), identifying_bytes(expected)) << gpus;
  }
}

TEST(ScenarioOfTrainingRun, LayersThatStagesDoNotDivideGoToTheFirstStages) {
  const auto stages = [](const char* layers) {
    return gpt_of({{"n_gpus", "4"}, {"pp", "4"}, {"layers", layers}}).step.split.layers_per_stage;
  };
  EXPECT_EQ(stages("10"), (std::vector<int>{3, 3, 2, 2}));
  EXPECT_TRUE(stages("8").empty());
}

TEST(ScenarioOfTrainingRun, WhatIsNamedBloomHasAlibiInPlaceOfPositions) {
  const ModelSpec gpt = gpt_of({}).model;
  EXPECT_EQ(gpt.family, ModelFamily::gpt2);
  const ModelSpec bloom = gpt_of({{"model", "BLOOM-proto-2L"}}).model;
  EXPECT_EQ(bloom.family, ModelFamily::bloom);
  // No table of positions, and a norm behind the embedding.
  EXPECT_EQ(parameter_count(bloom) - parameter_count(gpt), 2 * 1024 - 1024 * 1024);
}

TEST(ScenarioOfTrainingRun, MptIsGptWithExactGeluAndWithoutDropout) {
  const Scenario mpt =
      scenario_of(read(row("a", "llm-foundry", "bf16", "mpt", "none", "1", "1,,")).runs[0]);
  EXPECT_EQ(mpt.model.family, ModelFamily::gpt2);
  EXPECT_EQ(mpt.model.activation, Activation::gelu);
  EXPECT_EQ(mpt.model.hidden_dropout, 0);
  EXPECT_EQ(mpt.model.max_positions, 1024);
  EXPECT_EQ(mpt.step.framework.attention, AttentionKernels::flash1);
}

TEST(FrameworkAliases, TheLongestPartOfTheNameWins) {
  const FrameworkAliases aliases = framework_aliases(shipped_configs());
  const auto profile = [&](const char* name) {
    return aliases.choice_of(name, {}, shipped_configs()).profile;
  };
  EXPECT_EQ(profile("Megatron-Core CI dev"), "megatron");
  EXPECT_EQ(profile("Megatron-DeepSpeed 2022"), "megatron-deepspeed");
  EXPECT_EQ(profile("megatron-lm V2.0"), "megatron-deepspeed");
  EXPECT_EQ(profile("llm-foundry (Composer FSDP)"), "llm-foundry");
  EXPECT_EQ(profile("hf_compiled"), "hf-compile");
  EXPECT_EQ(profile("PyTorch compile"), "torch-compile");
  EXPECT_EQ(profile("megatron_local"), "megatron-local") << "a profile's own id";
  EXPECT_THROW(profile("tensorflow"), InputError);
}

TEST(FrameworkAliases, RunsOf2021And2022HadAnOlderNccl) {
  const FrameworkAliases aliases = framework_aliases(shipped_configs());
  const auto tuner = [&](const char* name) {
    return aliases.choice_of(name, {}, shipped_configs()).tuner;
  };
  EXPECT_EQ(tuner("Megatron-DeepSpeed 2022"), NcclTuner::v2_8);
  EXPECT_EQ(tuner("Megatron-Core CI dev"), NcclTuner::current);
}

TEST(ScenarioOfTrainingRun, TorchtitanRecomputesByOperatorAndCompilesWhereTheNotesSaySo) {
  const auto step = [](const char* notes) {
    return gpt_of({{"framework", "torchtitan"},
                   {"family", "llama"},
                   {"recompute", "selective"},
                   {"notes", notes}})
        .step;
  };
  EXPECT_EQ(step("").framework.selective, SelectiveRecompute::operators);
  EXPECT_EQ(step("").kernels, KernelMode::eager);
  EXPECT_EQ(step("torch.compile, 8 steps").kernels, KernelMode::fused);
}

TEST(ScenarioOfTrainingRun, ItsSettingsAloneMakeTheSameScenario) {
  const TrainingRun run = read(row("a", "NeMo", "bf16", "gpt", "full", "1", "1,,")).runs.at(0);
  const auto settings =
      settings_of_training_run(run, framework_aliases(shipped_configs()), shipped_configs());
  EXPECT_THAT(settings, ::testing::Contains("training.recompute=full"));
  EXPECT_EQ(identifying_bytes(tessera::scenario_of(settings, "settings", shipped_configs())),
            identifying_bytes(scenario_of(run)));
}

TEST(FrameworkAliases, EveryAliasStandsForAShippedProfile) {
  const auto ids = shipped_configs().ids(CatalogKind::frameworks);
  std::ifstream file(shipped_configs().folder(CatalogKind::frameworks) / "aliases.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::size_t profile = line.find(',') + 1;
    EXPECT_THAT(ids, ::testing::Contains(line.substr(profile, line.find(',', profile) - profile)))
        << line;
  }
}

}  // namespace
}  // namespace tessera
