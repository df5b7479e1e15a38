// Kimi delta attention beside latent attention without positions (Kimi Linear): parameters,
// arithmetic and saved bytes by hand.
#include "workloads/ops/states/kimi_delta.h"

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

constexpr std::int64_t kSequence = 1024, kHidden = 2304;
constexpr std::int64_t kHeads = 32, kDim = 128, kWidth = kHeads * kDim;

/// Kimi Linear 48B-A3B's layers.
ModelSpec kimi(const std::string& pattern) {
  ModelSpec model = test::llama2_7b();
  model.layers = std::ssize(pattern);
  model.layer_pattern = pattern;
  model.hidden = kHidden;
  model.heads = model.kv_heads = kHeads;
  model.head_dim = 192;
  model.rope_dim = 64;
  model.v_head_dim = 128;
  model.kv_rank = 512;
  model.attention_pattern = "n";
  model.ffn = 9216;
  model.vocab = 163840;
  if (pattern.find('E') != std::string::npos) {
    model.experts = 256;
    model.experts_per_token = 8;
    model.expert_ffn = model.shared_ffn = 1024;
    model.router_sigmoid = model.router_bias = true;
  }
  model.delta_heads = model.delta_key_heads = kHeads;
  model.delta_key_dim = model.delta_value_dim = kDim;
  return model;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

Block kimi_layer() {
  return build_model_graph(kimi("KK"), step()).blocks[1];
}

TEST(KimiDelta, KimiLinearHasThePublishedSizeToTheLastParameter) {
  std::string pattern = "K-";  // 27 layers; 4, 8, .. 24 and 27, from 1, attend
  for (int layer = 2; layer <= 27; ++layer) pattern += layer % 4 == 0 || layer == 27 ? "*E" : "KE";
  EXPECT_EQ(std::ranges::count(pattern, 'K'), 20);
  EXPECT_EQ(parameter_count(kimi(pattern)), 49'122'681'728);
  EXPECT_NEAR(static_cast<double>(parameter_counts(kimi(pattern)).active), 3.5e9, 0.1e9);
  const ModelGraph graph = build_model_graph(kimi("K-KE*E"), step());
  const std::int64_t corrections = 2 * 256;  // of routers: buffers
  EXPECT_EQ(graph.parameters(), parameter_count(kimi("K-KE*E")) - corrections);
}

TEST(KimiDelta, ALayerByHand) {
  const std::int64_t projections = 4 * kHidden * kWidth;               // q, k, v, output
  const std::int64_t ranks = 2 * (kHidden * kDim + kDim * kWidth);     // of decay and gate
  const std::int64_t steps = kHidden * kHeads;                         // a number per head
  const std::int64_t small = 3 * 4 * kWidth + kHeads + kWidth + kDim;  // taps, A, its bias, norm
  EXPECT_EQ(kimi_layer().parameters, kHidden + projections + ranks + steps + small);
}

double flops_of(const std::vector<GraphOp>& ops) {
  double sum = 0;
  for (const GraphOp& op : ops)
    if (op.name.starts_with("delta.rule") && counts_as_model_flops(op.kernel))
      sum += op.kernel.flops.value();
  return sum;
}

TEST(KimiDelta, MultipliesInChunksOf64WhosePairsAreBlocksOf16) {
  // Per position and head, of chunks c: q k^T and k k^T, of whose 4 x 4 blocks 10 lie up to the
  // diagonal; the triangle solved, c^2 / 2; what is erased and written, c (K + V); the states,
  // 2 K V; and what they give, K V + c V.
  const double c = 64, k = kDim, v = kDim;
  const double forward = 2 * k * c * 10 / 16 + c * c / 2 + c * (k + v) + 2 * k * v + k * v + c * v;
  EXPECT_DOUBLE_EQ(flops_of(kimi_layer().forward), 2 * kSequence * kHeads * forward);
  // Erased and written, and the states, once more; pairs and values in the chunk, 2 c V; of the
  // states, 3 K V; of queries, keys and what is erased, 3 K V; of the solved triangle,
  // 2 c (K + V + c); of pairs, four products of the same blocks.
  const double backward = c * (k + v) + 2 * k * v + 2 * c * v + 3 * k * v + 3 * k * v +
                          2 * c * (k + v + c) + 4 * k * c * 10 / 16;
  EXPECT_DOUBLE_EQ(flops_of(kimi_layer().backward), 2 * kSequence * kHeads * backward);
}

TEST(KimiDelta, SavesOperandsPairsAndSolvedTriangles) {
  // In 16 bit per token: the norm ahead (2 h), what three convolutions read, queries and keys of
  // unit length, values, two ranks of a head and what comes of them (decay and gate), triangles of
  // 64 columns, what the rule gives, and that behind norm and gate.
  const std::int64_t half =
      2 * kHidden + 3 * kWidth + 3 * kWidth + 2 * kDim + 2 * kWidth + 64 * kHeads + 2 * kWidth;
  // In 32 bit: running sums of every channel, q k^T, steps, lengths of queries and keys, factors of
  // both norms.
  const std::int64_t full = kWidth + 64 * kHeads + kHeads + 2 * kHeads + kHeads + 1;
  EXPECT_EQ(kimi_layer().saved, Bytes(kSequence * (2 * half + 4 * full)));
}

TEST(KimiDelta, LatentAttentionBetweenThemTurnsNothing) {
  const Block plain = build_model_graph(kimi("**"), step()).blocks[1];
  ModelSpec turned_model = kimi("**");
  turned_model.attention_pattern.clear();
  const Block turned = build_model_graph(turned_model, step()).blocks[1];
  const auto has = [](const Block& layer, const std::string& name) {
    return std::ranges::any_of(layer.forward, [&](const GraphOp& op) { return op.name == name; });
  };
  EXPECT_TRUE(has(turned, "rotary.q") && has(turned, "rotary.kv"));
  EXPECT_FALSE(has(plain, "rotary.q") || has(plain, "rotary.kv") || has(plain, "rotary.k"));
  EXPECT_TRUE(has(plain, "rotary.k.join")) << "the key that heads share joins each of theirs";
  EXPECT_EQ(plain.parameters, turned.parameters);
  EXPECT_EQ(total(plain.forward).gemm_flops.value(), total(turned.forward).gemm_flops.value());
}

TEST(KimiDelta, WhatItsCodeDoesNotHaveIsRefused) {
  const auto refusal = [](const ModelSpec& model) { return test::refusal(model, step()); };
  ModelSpec model = kimi("KK");
  EXPECT_EQ(refusal(model), "");
  model.delta_key_heads = 16;
  EXPECT_THAT(refusal(model), HasSubstr("whose keys and values have equal heads"));
  model = kimi("KK");
  model.delta_value_dim = 64;
  EXPECT_THAT(refusal(model), HasSubstr("make delta_key_heads = delta_heads and delta_key_dim"));
  StepOptions split = step();
  split.layout.tensor = 2;
  EXPECT_THAT(test::refusal(kimi("KK"), split),
              HasSubstr("parallelism.tensor: of Kimi delta attention is not simulated"));
  StepOptions adapters = step();
  adapters.lora_rank = 8;
  EXPECT_THAT(test::refusal(kimi("KK"), adapters), HasSubstr("training.lora_rank"));
}

}  // namespace
}  // namespace tessera
