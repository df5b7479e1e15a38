// Adapters beside linear layers with biases, and those that stretch what layers give (DoRA).
#include <algorithm>
#include <stdexcept>

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

TEST(Dora, TrainsANumberPerOutputBesides) {
  EXPECT_EQ(layer(small(), adapted(true)).parameters, kRank * (kInputs + kOutputs) + kOutputs);
  EXPECT_EQ(layer(small(), adapted(true)).parameter_tensors, 4 * 3);
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
