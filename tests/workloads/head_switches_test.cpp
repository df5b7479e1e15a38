// Layers with a window whose keys, values and sinks are of their own number (MiMo-V2-Flash), and
// queries of a rank of their own (Step-3): parameters, arithmetic and saved bytes by hand.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 512, kHidden = 256;

/// A layer that sees all tokens, then one with a window: 8 heads of 48, values of 32, 2 and 4 heads
/// of keys.
ModelSpec two_kinds() {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = kHidden;
  m.heads = 8;
  m.kv_heads = 2;
  m.head_dim = 48;
  m.v_head_dim = 32;
  m.rope_dim = 16;
  m.ffn = 512;
  m.vocab = 1024;
  m.window = 128;
  m.attention_pattern = "fw";
  m.window_kv_heads = 4;
  m.window_sinks = true;
  return m;
}

/// Queries of 8 heads of 64 from a rank of 96; a head of keys and values.
ModelSpec ranked() {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = kHidden;
  m.heads = 8;
  m.kv_heads = 1;
  m.head_dim = 64;
  m.q_rank = 96;
  m.ffn = 512;
  m.vocab = 1024;
  return m;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

const GraphOp& kernel(const Block& block, const std::string& name) {
  const auto found = std::ranges::find_if(block.forward, [&](const GraphOp& op) {
    return op.kind == GraphOpKind::kernel && op.name == name;
  });
  if (found == block.forward.end()) throw std::runtime_error("no operator " + name);
  return *found;
}

constexpr std::int64_t kMlp = 3 * kHidden * 512, kNorms = 2 * kHidden;
constexpr std::int64_t kEnds = 2 * 1024 * kHidden + kHidden;

TEST(WindowHeads, ParametersOfBothKindsByHand) {
  const std::int64_t queries = kHidden * 8 * 48, output = 8 * 32 * kHidden;
  const std::int64_t full = queries + kHidden * 2 * (48 + 32) + output;
  const std::int64_t window = queries + kHidden * 4 * (48 + 32) + output + 8;  // sinks
  EXPECT_EQ(parameter_count(two_kinds()), kEnds + full + window + 2 * (kMlp + kNorms));
  const ModelGraph graph = build_model_graph(two_kinds(), step());
  EXPECT_EQ(graph.parameters(), parameter_count(two_kinds()));
  EXPECT_EQ(graph.at(1).parameters, full + kMlp + kNorms);
  EXPECT_EQ(graph.at(2).parameters, window + kMlp + kNorms);
}

TEST(WindowHeads, EachKindAttendsWithItsOwnKeys) {
  const ModelGraph graph = build_model_graph(two_kinds(), step());
  const AttentionCall full = kernel(graph.at(1), "attention.flash").kernel.attention;
  const AttentionCall window = kernel(graph.at(2), "attention.flash").kernel.attention;
  EXPECT_EQ(full.kv_heads, 2);
  EXPECT_EQ(window.kv_heads, 4);
  EXPECT_EQ(full.window, 0);
  EXPECT_EQ(window.window, 128);
  EXPECT_EQ(full.head_dim, 48);
  EXPECT_EQ(full.value_dim, 32);
  // Q K^T of 48 and P V of 32, over half of all pairs.
  EXPECT_DOUBLE_EQ(kernel(graph.at(1), "attention.flash").kernel.flops.value(),
                   8 * 2.0 * (48 + 32) * kSequence * kSequence / 2);
}

TEST(WindowHeads, MoreKeysAreMoreToSave) {
  const ModelGraph graph = build_model_graph(two_kinds(), step());
  // Two more heads of keys and of values, in 16 bit.
  EXPECT_EQ(graph.at(2).saved - graph.at(1).saved, Bytes(2 * kSequence * 2 * (48 + 32)));
}

TEST(WindowHeads, NumbersThatLieAreRefused) {
  const auto refused = [](auto change) {
    ModelSpec model = two_kinds();
    change(model);
    return test::refusal(model, step());
  };
  EXPECT_EQ(refused([](ModelSpec&) {}), "");
  EXPECT_THAT(refused([](ModelSpec& m) { m.window_kv_heads = 3; }),
              HasSubstr("model.window_kv_heads = 3 does not divide heads = 8"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.attention_sinks = true; }),
              HasSubstr("model.window_sinks and attention_sinks both say"));
  const std::string without = refused([](ModelSpec& m) {
    m.window = 0;
    m.attention_pattern.clear();
  });
  EXPECT_THAT(without, HasSubstr("model.window_kv_heads is of windows, and no layer has one"));
  EXPECT_THAT(without, HasSubstr("model.window_sinks is of windows, and no layer has one"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.attention_gate = true; }),
              HasSubstr("model.v_head_dim differs from head_dim beside attention_gate"));
  StepOptions split = step();
  split.layout.tensor = 4;  // divides the heads and those of windows
  EXPECT_THAT(test::refusal(two_kinds(), split),
              HasSubstr("parallelism.tensor = 4 does not divide kv_heads = 2"));
  StepOptions adapters = step();
  adapters.lora_rank = 8;
  EXPECT_THAT(test::refusal(two_kinds(), adapters), HasSubstr("beside model.window_kv_heads"));
}

TEST(WindowHeads, TensorParallelRanksHoldSomeOfBothKinds) {
  StepOptions split = step();
  split.layout.tensor = 2;
  split.layout.sequence_parallel = true;
  const ModelGraph graph = build_model_graph(two_kinds(), split);
  const std::int64_t half = kHidden * 8 * 48 / 2 + 8 * 32 * kHidden / 2 + kMlp / 2;
  EXPECT_EQ(graph.at(1).parameters, half + kHidden * (48 + 32) + kNorms);
  EXPECT_EQ(graph.at(2).parameters, half + kHidden * 2 * (48 + 32) + kNorms + 4);
}

TEST(QueryRank, ParametersByHand) {
  const std::int64_t queries = kHidden * 96 + 96 + 96 * 8 * 64;
  const std::int64_t attention = queries + kHidden * 2 * 64 + 8 * 64 * kHidden;
  EXPECT_EQ(parameter_count(ranked()), kEnds + 2 * (attention + kMlp + kNorms));
  EXPECT_EQ(build_model_graph(ranked(), step()).parameters(), parameter_count(ranked()));
}

TEST(QueryRank, MultipliesDownAndUp) {
  ModelSpec plain = ranked();
  plain.q_rank = 0;
  const auto products = [](const ModelSpec& model) {
    return total(build_model_graph(model, step()).at(1).forward).gemm_flops.value();
  };
  const double per_token = kHidden * 96 + 96 * 512 - kHidden * 512;
  EXPECT_DOUBLE_EQ(products(ranked()) - products(plain), 2 * kSequence * per_token);
}

TEST(QueryRank, SavesTheRankAndWhatItsNormGives) {
  ModelSpec plain = ranked();
  plain.q_rank = 0;
  const auto saved = [](const ModelSpec& model) {
    return build_model_graph(model, step()).at(1).saved;
  };
  // Both in 16 bit, and a factor of the norm in 32.
  EXPECT_EQ(saved(ranked()) - saved(plain), Bytes(kSequence * (2 * 2 * 96 + 4)));
}

TEST(QueryRank, IsRefusedBesideBiasesAndAdapters) {
  ModelSpec model = ranked();
  EXPECT_EQ(test::refusal(model, step()), "");
  StepOptions adapters = step();
  adapters.lora_rank = 8;
  EXPECT_THAT(test::refusal(model, adapters), HasSubstr("or model.q_rank without kv_rank"));
  model.qkv_bias = true;
  EXPECT_THAT(test::refusal(model, step()),
              HasSubstr("model.q_rank is not simulated with qkv_bias or attention_gate"));
}

}  // namespace
}  // namespace tessera
