// Adapters beside linear layers with biases, and those that stretch what layers give (DoRA).
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTokens = 512, kRank = 16;
// Outputs and inputs of the four layers below: queries, keys and values; output; up; down.
constexpr std::int64_t kOutputs = 768 + 256 + 1024 + 256;
constexpr std::int64_t kInputs = 256 + 256 + 256 + 512;
constexpr std::int64_t kWeights = 256 * 768 + 256 * 256 + 256 * 1024 + 512 * 256;

ModelSpec small() {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = 256;
  m.heads = m.kv_heads = 4;
  m.head_dim = 64;
  m.ffn = 512;
  m.vocab = 1024;
  return m;
}

StepOptions adapted(bool dora) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, kTokens));
  step.lora_rank = kRank;
  step.dora = dora;
  return step;
}

Block layer(const ModelSpec& model, const StepOptions& step) {
  const ModelGraph graph = build_model_graph(model, step);
  const auto found =
      std::ranges::find_if(graph.blocks, [](const Block& b) { return b.name == "layer"; });
  if (found == graph.blocks.end()) throw std::runtime_error("no layer");
  return *found;
}

TEST(Adapters, StandBesideLayersWithBiasesToo) {
  ModelSpec model = small();
  model.qkv_bias = model.mlp_bias = true;  // Qwen 2 and Arcee have one of them each
  EXPECT_EQ(layer(model, adapted(false)).parameters, kRank * (kInputs + kOutputs));
}

/// Compiled code makes no calls for views, and the frozen word table has nothing else backward.
TEST(Adapters, TheFrozenWordTableGivesItsGradientBackInCompiledCode) {
  StepOptions step = adapted(false);
  step.kernels = KernelMode::fused;
  const ModelGraph graph = build_model_graph(small(), step);
  const Block& table = graph.blocks.front();
  ASSERT_EQ(table.backward.size(), 1U);
  // 512 tokens with 256 numbers of 2 bytes.
  EXPECT_EQ(table.backward.front().freed, Bytes(512 * 256 * 2));
}

StepOptions adapted_modules(const std::vector<std::string>& modules) {
  StepOptions step = adapted(false);
  step.lora_modules = modules;
  return step;
}

/// Of grouped queries: 4 heads of 64 numbers, one key and one value for all of them.
ModelSpec grouped() {
  ModelSpec model = small();
  model.kv_heads = 1;
  return model;
}

TEST(AdaptersOfModules, HaveTwoFactorsEach) {
  const Block block = layer(grouped(), adapted_modules({"q_proj", "v_proj"}));
  // 256 inputs; queries have 256 outputs, values 64.
  EXPECT_EQ(block.parameters, kRank * ((256 + 256) + (256 + 64)));
  EXPECT_EQ(block.parameter_sizes.size(), 4u);
  const Block all = layer(grouped(), adapted_modules({"q_proj", "k_proj", "v_proj", "o_proj",
                                                      "gate_proj", "up_proj", "down_proj"}));
  const std::int64_t attention = (256 + 256) + 2 * (256 + 64) + (256 + 256);
  EXPECT_EQ(all.parameters, kRank * (attention + 3 * (256 + 512)));
}

/// Of Llama 2 7B with rank 8 on queries and values: peft prints trainable params: 4,194,304.
TEST(AdaptersOfModules, OfLlama2Are4194304OnQueriesAndValues) {
  ModelSpec llama = test::llama2_7b();
  StepOptions step = adapted_modules({"q_proj", "v_proj"});
  step.lora_rank = 8;
  EXPECT_EQ(layer(llama, step).parameters * llama.layers, 8 * 2 * (4096 + 4096) * 32);
  EXPECT_EQ(8 * 2 * (4096 + 4096) * 32, 4'194'304);
}

TEST(AdaptersOfModules, AddToTheirPartOfAFusedLayerAlone) {
  const Block block = layer(grouped(), adapted_modules({"v_proj"}));
  const auto op = [&](const std::vector<GraphOp>& ops, const std::string& name) {
    const auto found = std::ranges::find(ops, name, &GraphOp::name);
    if (found == ops.end()) throw std::runtime_error("no " + name);
    return found->kernel;
  };
  const std::string v = "attention.qkv.v_proj.lora";
  EXPECT_EQ(op(block.forward, v + "_b").flops.value(), 2.0 * kTokens * kRank * 64);
  EXPECT_EQ(op(block.forward, v + ".add").bytes_read.value(), 2 * 2 * kTokens * 64);
  EXPECT_EQ(op(block.forward, v + ".add").bytes_written.value(), 2 * kTokens * 64);
  EXPECT_EQ(op(block.backward, v + "_b.wgrad").flops.value(), 2.0 * kTokens * kRank * 64);
  const auto of_others = [](const GraphOp& each) {
    return each.name.find("lora") != std::string::npos &&
           !each.name.starts_with("attention.qkv.v_");
  };
  EXPECT_EQ(std::ranges::count_if(block.forward, of_others), 0);
}

TEST(AdaptersOfModules, TensorParallelRanksHoldPartsOfOneFactor) {
  StepOptions step = adapted_modules({"q_proj", "o_proj"});
  step.layout.tensor = 2;
  // Half of the queries' second factor and of the output layer's first; the others in full.
  EXPECT_EQ(layer(small(), step).parameters, kRank * ((256 + 128) + (128 + 256)));
}

TEST(AdaptersOfModules, AreRefusedByNameWhereTheyAreNotThose) {
  const auto refused = [](const std::vector<std::string>& modules, ModelSpec model = small()) {
    return test::refusal(model, adapted_modules(modules));
  };
  EXPECT_EQ(refused({"q_proj", "v_proj"}), "");
  EXPECT_THAT(refused({"lm_head"}), HasSubstr("has lm_head, of which adapters are not simulated"));
  EXPECT_THAT(refused({"q_proj", "q_proj"}), HasSubstr("names q_proj twice"));
  ModelSpec experts = small();
  experts.experts = 4;
  experts.experts_per_token = 2;
  EXPECT_THAT(refused({"up_proj"}, experts), HasSubstr("routed experts"));
  EXPECT_EQ(refused({"q_proj"}, experts), "");
  StepOptions step = adapted_modules({"q_proj"});
  step.dora = true;
  EXPECT_THAT(test::refusal(small(), step), HasSubstr("is not simulated with DoRA"));
  step = adapted_modules({"q_proj"});
  step.lora_targets = LoraTargets::attention;
  EXPECT_THAT(test::refusal(small(), step), HasSubstr("keep one"));
  step = adapted_modules({"q_proj"});
  step.lora_rank = 0;
  EXPECT_THAT(test::refusal(small(), step), HasSubstr("there are none"));
}

TEST(Dora, TrainsANumberPerOutputBesides) {
  EXPECT_EQ(layer(small(), adapted(true)).parameters, kRank * (kInputs + kOutputs) + kOutputs);
  EXPECT_EQ(layer(small(), adapted(true)).parameter_sizes.size(), 4u * 3);
}

TEST(Dora, MultipliesTheFactorsToTheWeightsSizeInForwardAlone) {
  const Block without = layer(small(), adapted(false)), with = layer(small(), adapted(true));
  EXPECT_EQ(total(with.forward).gemm_flops.value(),
            total(without.forward).gemm_flops.value() + 2.0 * kRank * kWeights);
  EXPECT_EQ(total(with.backward).gemm_flops.value(), total(without.backward).gemm_flops.value());
  // A factor scaled, the product, its sum with the weight, a norm of rows, a ratio, the result
  // stretched and 0 added; backward the gradients of result and number, a sum, and the ratio's.
  EXPECT_EQ(total(with.forward).kernels, total(without.forward).kernels + 4 * 7);
}

TEST(Dora, SavesWhatLayersGaveAheadOfStretching) {
  const Block without = layer(small(), adapted(false)), with = layer(small(), adapted(true));
  // In 16 bit: that, and per output the length and the ratio.
  EXPECT_EQ(with.saved, without.saved + Bytes(2 * kTokens * kOutputs + 2 * 2 * kOutputs));
}

TEST(Dora, MovesEveryWeightThreeTimes) {
  const Block with = layer(small(), adapted(true));
  const auto norm = std::ranges::find_if(
      with.forward, [](const GraphOp& op) { return op.name == "mlp.up.lora.lengths"; });
  ASSERT_NE(norm, with.forward.end());
  EXPECT_EQ(norm->reads.front().bytes, Bytes(2 * 256 * 1024));
  const auto sum = std::ranges::find_if(
      with.forward, [](const GraphOp& op) { return op.name == "mlp.up.lora.lengths.add"; });
  ASSERT_NE(sum, with.forward.end());
  EXPECT_EQ(sum->reads.size() + sum->writes.size(), 3u);
}

TEST(Dora, IsRefusedWhereItsNormsAreNotThose) {
  StepOptions step = adapted(true);
  step.layout.tensor = 2;
  EXPECT_THAT(test::refusal(small(), step), HasSubstr("not simulated over tensor-parallel ranks"));
  step = adapted(true);
  step.precision = Precision::fp8;
  EXPECT_THAT(test::refusal(small(), step), HasSubstr("cast for their products"));
  step = adapted(true);
  step.lora_rank = 0;
  EXPECT_THAT(test::refusal(small(), step), HasSubstr("there are none"));
  EXPECT_EQ(test::refusal(small(), adapted(true)), "");
}

}  // namespace
}  // namespace tessera
