// Gated delta nets in a pattern of layers (Qwen3-Next): parameters, arithmetic and saved bytes by
// hand.
#include "workloads/ops/states/delta_net.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 1024, kHidden = 2048;
constexpr std::int64_t kHeads = 32, kKeyHeads = 16, kKey = 128, kValue = 128;
constexpr std::int64_t kValues = kHeads * kValue, kKeys = kKeyHeads * kKey;
constexpr std::int64_t kConvolved = 2 * kKeys + kValues;

/// Qwen3-Next 80B-A3B's layers.
ModelSpec next(const std::string& pattern) {
  ModelSpec model = test::llama2_7b();
  model.layers = std::ssize(pattern);
  model.layer_pattern = pattern;
  model.hidden = kHidden;
  model.heads = 16;
  model.kv_heads = 2;
  model.head_dim = 256;
  model.rope_dim = 64;
  model.qk_norm = model.attention_gate = true;
  model.ffn = 5120;
  model.vocab = 151936;
  if (pattern.find('E') != std::string::npos) {
    model.experts = 512;
    model.experts_per_token = 10;
    model.expert_ffn = model.shared_ffn = 512;
    model.shared_gate = true;
  }
  model.delta_heads = kHeads;
  model.delta_key_heads = kKeyHeads;
  model.delta_key_dim = kKey;
  model.delta_value_dim = kValue;
  return model;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

Block delta_layer() {
  return build_model_graph(next("GG"), step()).blocks[1];
}

TEST(DeltaNet, QwenNextHasThePublishedSize) {
  std::string pattern;
  for (int i = 0; i < 12; ++i) pattern += "GEGEGE*E";
  const ModelSpec model = next(pattern);
  // 81'324'862'720 with the layer that predicts further, which is one of attention, with a
  // projection of two hidden states and three norms.
  const std::int64_t attention = kHidden * (2 * 4096 + 2 * 512 + 4096) + 2 * 256 + kHidden;
  const std::int64_t experts = 513 * 3 * kHidden * 512 + 512 * kHidden + kHidden + kHidden;
  EXPECT_EQ(parameter_count(model) + attention + experts + 2 * kHidden * kHidden + 3 * kHidden,
            81'324'862'720);
  EXPECT_NEAR(static_cast<double>(parameter_counts(model).active), 3.9e9, 0.1e9);
  const ModelGraph graph = build_model_graph(next("GE*E"), step());
  EXPECT_EQ(graph.parameters(), parameter_count(next("GE*E")));
}

TEST(DeltaNet, ALayerByHand) {
  const std::int64_t projected = kConvolved + kValues + 2 * kHeads;
  EXPECT_EQ(delta_layer().parameters, kHidden + kHidden * projected + 4 * kConvolved + 2 * kHeads +
                                          kValue + kValues * kHidden);
}

double flops_of(const std::vector<GraphOp>& ops, const std::string& part) {
  double sum = 0;
  for (const GraphOp& op : ops)
    if (op.name.starts_with("delta.rule" + part) && counts_as_model_flops(op.kernel))
      sum += op.kernel.flops.value();
  return sum;
}

TEST(DeltaNet, MultipliesInChunksOf64) {
  // Per position and head, of chunks c: k k^T, c K; its triangle solved, c^2 / 2; what is erased
  // and written, c (K + V); the states, 2 K V; and what they give, K V + c K + c V.
  const double c = 64, k = kKey, v = kValue;
  const double forward = c * k + c * c / 2 + c * (k + v) + 2 * k * v + k * v + c * k + c * v;
  EXPECT_DOUBLE_EQ(flops_of(delta_layer().forward, ""), 2 * kSequence * kHeads * forward);
  // Erased and written, and the states, once more; values in the chunk, c K + c V; of the states,
  // 3 K V; of queries, keys and what is erased, 3 K V + c V + 2 c K; of the triangle,
  // c (5 K + 2 V) + 2 c^2.
  const double backward = c * (k + v) + 2 * k * v + c * k + c * v + 3 * k * v + 3 * k * v + c * v +
                          2 * c * k + c * (5 * k + 2 * v) + 2 * c * c;
  EXPECT_DOUBLE_EQ(flops_of(delta_layer().backward, ""), 2 * kSequence * kHeads * backward);
}

TEST(DeltaNet, StatesPassFromChunkToChunkOneAfterTheOther) {
  const Block layer = delta_layer();
  const auto states = std::ranges::find_if(
      layer.forward, [](const GraphOp& op) { return op.name == "delta.rule.states"; });
  ASSERT_NE(states, layer.forward.end());
  EXPECT_EQ(states->kernel.batch, kHeads);
  EXPECT_EQ(states->kernel.k, 2 * kSequence);
}

TEST(DeltaNet, SavesOperandsAndSolvedTriangles) {
  // In 16 bit per token: the norm ahead (2 h), what is convolved, heads of unit length, those for
  // every state (q, k), values, steps, triangles of 64 columns, and what the rule gives, normed,
  // its gate and both together.
  const std::int64_t half = 2 * kHidden + kConvolved + 2 * kKeys + 2 * kHeads * kKey + kValues +
                            kHeads + 64 * kHeads + 4 * kValues;
  // In 32 bit: softplus twice, running sums, lengths of queries and keys, factors of both norms.
  const std::int64_t full = 3 * kHeads + 2 * kKeyHeads + kHeads + 1;
  // And three numbers per head of the decay's rate.
  EXPECT_NEAR(static_cast<double>(delta_layer().saved.value()),
              static_cast<double>(kSequence * (2 * half + 4 * full)), 4 * 3 * kHeads);
}

TEST(DeltaNet, AttentionBetweenThemHasAGateAsWideAsItsHeads) {
  ModelSpec without = next("**");
  without.attention_gate = false;
  const Block plain = build_model_graph(without, step()).blocks[1];
  const Block gated = build_model_graph(next("**"), step()).blocks[1];
  EXPECT_EQ(gated.parameters, plain.parameters + kHidden * 4096);
  EXPECT_EQ(total(gated.forward).gemm_flops.value(),
            total(plain.forward).gemm_flops.value() + 2.0 * kSequence * kHidden * 4096);
  // The gate and what it weighs.
  EXPECT_EQ(gated.saved, plain.saved + Bytes(2 * kSequence * 2 * 4096));
}

TEST(DeltaNet, SizesThatLieAreRefused) {
  const auto refusal = [](const ModelSpec& model) { return test::refusal(model, step()); };
  ModelSpec model = next("GG");
  EXPECT_EQ(refusal(model), "");
  model.delta_key_dim = 0;
  EXPECT_THAT(refusal(model), HasSubstr("gated delta nets without sizes"));
  model = next("GG");
  model.delta_key_heads = 5;
  EXPECT_THAT(refusal(model), HasSubstr("5 heads of keys do not serve 32"));
  model = next("GG");
  model.layer_pattern.clear();
  EXPECT_THAT(refusal(model), HasSubstr("model.delta_heads is for layers of a pattern"));
}

}  // namespace
}  // namespace tessera
