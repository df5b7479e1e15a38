// Windows, latent attention, shared experts and other switches of family llama, against counts by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/hugging_face/llama_parameters.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"
#include "workloads/program/attention.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kBatch = 1, kSequence = 512;

/// Two layers, small enough to count by hand.
ModelSpec small() {
  ModelSpec m = test::llama2_7b();
  m.name = "small";
  m.layers = 2;
  m.hidden = 256;
  m.heads = m.kv_heads = 4;
  m.head_dim = 64;
  m.ffn = 512;
  m.vocab = 1024;
  return m;
}

/// DeepSeek's layers: heads of 48 + 16, values of 32, 8 experts of 128 and a shared one of 256.
ModelSpec latent() {
  ModelSpec m = small();
  m.kv_rank = 96;
  m.q_rank = 160;
  m.rope_dim = 16;
  m.v_head_dim = 32;
  m.experts = 8;
  m.experts_per_token = 2;
  m.expert_ffn = 128;
  m.shared_ffn = 256;
  m.dense_layers = 1;
  m.router_groups = 4;
  m.router_sigmoid = m.router_bias = true;
  return m;
}

ModelSpec biased_experts() {  // GPT-OSS
  ModelSpec m = small();
  m.window = 128;
  m.full_every = 2;
  m.attention_sinks = m.qkv_bias = m.output_bias = m.expert_bias = true;
  m.experts = 4;
  m.experts_per_token = 2;
  return m;
}

StepOptions megatron_step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, kBatch, kSequence));
}

const Block& block(const ModelGraph& graph, const std::string& name) {
  for (const Block& b : graph.blocks) {
    if (b.name == name) return b;
  }
  throw std::runtime_error("no block " + name);
}

const GraphOp& op(const std::vector<GraphOp>& ops, const std::string& name) {
  for (const GraphOp& o : ops) {
    if (o.kind == GraphOpKind::kernel && o.name == name) return o;
  }
  throw std::runtime_error("no operator " + name);
}

using test::refusal;

// Attention kernels.

TEST(AttentionWindow, CountsPairsWithinTheWindow) {
  AttentionCall call;
  call.seq_q = call.seq_kv = 1024;
  call.head_dim = 64;
  EXPECT_EQ(visible_pairs(call), 1024.0 * 1024 / 2);
  call.window = 128;  // 1024 queries see 128 keys, but the first 128 only those before: - 128^2 / 2
  EXPECT_EQ(visible_pairs(call), 1024.0 * 128 - 128.0 * 128 / 2);
  EXPECT_EQ(attention_flops(call), 4.0 * 64 * (1024.0 * 128 - 128.0 * 128 / 2));
  call.window = 1024;
  EXPECT_EQ(visible_pairs(call), 1024.0 * 1024 / 2) << "a window that holds all";
  call.window = 4096;
  EXPECT_EQ(visible_pairs(call), 1024.0 * 1024 / 2);
}

TEST(AttentionWindow, MorePairsInAWiderWindow) {
  AttentionCall call;
  call.seq_q = call.seq_kv = 4096;
  double before = 0;
  for (call.window = 1; call.window <= 4096; call.window += 63) {
    EXPECT_GT(visible_pairs(call), before);
    before = visible_pairs(call);
  }
}

TEST(AttentionValues, OfAnotherSizeThanQueries) {
  AttentionCall call;
  call.seq_q = call.seq_kv = 256;
  call.causal = false;
  call.head_dim = 192;
  call.value_dim = 128;
  const double pairs = 256.0 * 256;
  EXPECT_EQ(attention_flops(call), pairs * (2 * 192 + 2 * 128));          // QK^T, PV
  EXPECT_EQ(attention_bytes(call), 2 * 256.0 * (192 + 192 + 128 + 128));  // Q, K, V, O
  call.direction = AttentionDirection::backward;  // S, dQ, dK of 192; dP, dV of 128
  EXPECT_EQ(attention_flops(call), pairs * (3 * 2 * 192 + 2 * 2 * 128));
}

// Parameters.

TEST(LlamaParameters, OfPublishedModels) {
  ModelSpec v2 = small();  // DeepSeek-V2-Lite: 15,706,484,224
  v2.layers = 27;
  v2.hidden = 2048;
  v2.heads = v2.kv_heads = 16;
  v2.head_dim = 192;
  v2.kv_rank = 512;
  v2.rope_dim = 64;
  v2.v_head_dim = 128;
  v2.ffn = 10944;
  v2.vocab = 102400;
  v2.experts = 64;
  v2.experts_per_token = 6;
  v2.expert_ffn = 1408;
  v2.shared_ffn = 2816;
  v2.dense_layers = 1;
  EXPECT_EQ(parameter_count(v2), 15'706'484'224);
  EXPECT_EQ(parameter_counts(v2).active, 15'706'484'224 - 26LL * 58 * 3 * 2048 * 1408);
}

TEST(LlamaParameters, OfALatentLayerByHand) {
  const ModelSpec m = latent();
  const std::int64_t attention = 256 * 160 + 160 + 160 * 4 * 64  // queries
                                 + 256 * (96 + 16) + 96          // keys and values, down
                                 + 96 * 4 * (48 + 32)            // up
                                 + 4 * 32 * 256;                 // output
  const std::int64_t dense = 3 * 256 * 512;
  const std::int64_t sparse = 8 * 3 * 256 * 128 + 8 * 256 + 8 + 3 * 256 * 256;
  const std::int64_t norms = 2 * 256;
  EXPECT_EQ(parameter_count(m), 2 * 1024 * 256 + 256 + 2 * (attention + norms) + dense + sparse);
}

TEST(LlamaParameters, OfBiasedExpertsAndSinksByHand) {
  const std::int64_t attention = 4 * 256 * 256 + 3 * 256 + 256 + 4;  // biases, sinks
  const std::int64_t experts = 4 * (3 * 256 * 512 + 2 * 512 + 256) + 4 * (256 + 1);
  EXPECT_EQ(parameter_count(biased_experts()),
            2 * 1024 * 256 + 256 + 2 * (attention + experts + 2 * 256));
}

class SwitchGraph : public ::testing::TestWithParam<ModelSpec> {};

std::vector<ModelSpec> one_of_each_switch() {
  std::vector<ModelSpec> models{latent(), biased_experts()};
  const auto with = [&](const std::string& name, auto change) {
    ModelSpec m = small();
    change(m);
    m.name = name;
    models.push_back(m);
  };
  models[0].name = "latent";
  models[1].name = "biasedexperts";
  with("latentwithoutqueryrank", [](ModelSpec& m) { m = latent(), m.q_rank = 0; });
  with("sandwich", [](ModelSpec& m) { m.norm_placement = NormPlacement::both; });
  with("gelugate", [](ModelSpec& m) { m.activation = Activation::geglu; });
  with("normafter", [](ModelSpec& m) {
    m.norm_placement = NormPlacement::after;
    m.qk_norm = m.qk_norm_wide = true;
  });
  with("parallel", [](ModelSpec& m) {
    m.block_order = BlockOrder::parallel;
    m.norm = NormKind::layer_norm_without_bias;
    m.logit_scale = m.tied_embeddings = true;
  });
  with("twonorms", [](ModelSpec& m) {
    m.block_order = BlockOrder::parallel_two_norms;
    m.norm = NormKind::layer_norm;
    m.activation = Activation::gelu;
    m.qkv_bias = m.output_bias = m.mlp_bias = m.head_bias = true;
    m.rope_dim = 16;
  });
  with("sharedgate", [](ModelSpec& m) {
    m = latent();
    m.kv_rank = m.q_rank = m.rope_dim = m.v_head_dim = 0;
    m.shared_gate = true;
  });
  with("scales", [](ModelSpec& m) {
    m.embedding_scale = m.residual_scale = m.logit_softcap = m.attention_softcap = true;
  });
  return models;
}

TEST_P(SwitchGraph, HoldsTheParametersOfTheClosedForm) {
  const ModelSpec& m = GetParam();
  // The router's corrections are buffers, which no optimizer knows.
  const std::int64_t corrections = m.router_bias ? (m.layers - m.dense_layers) * m.experts : 0;
  EXPECT_EQ(build_model_graph(m, megatron_step()).parameters() + corrections, parameter_count(m));
}

TEST_P(SwitchGraph, TensorParallelRanksShareTheProducts) {
  if (GetParam().qk_norm_wide) GTEST_SKIP() << "is for one rank";
  const auto products = [&](int tensor) {
    StepOptions step = megatron_step();
    step.layout.tensor = tensor;
    step.layout.sequence_parallel = tensor > 1;
    const ModelGraph graph = build_model_graph(GetParam(), step);
    double flops = 0;
    for (const int index : graph.order) {
      const Block& b = graph.blocks[static_cast<std::size_t>(index)];
      flops += total(b.forward).gemm_flops.value() + total(b.backward).gemm_flops.value();
    }
    return flops;
  };
  // Routers, and gates of shared experts, run on every rank.
  EXPECT_NEAR(2 * products(2) / products(1), 1, GetParam().experts > 0 ? 0.01 : 1e-9);
}

/// LlamaForCausalLM drops nothing behind its branches; in inference nothing is dropped.
TEST(ModelSwitches, HuggingFacesLlamaHasNoHiddenDropout) {
  ModelSpec model = small();
  model.hidden_dropout = 0.1;
  const auto said = [&](StepMode mode) {
    return refusal(model, test::single_gpu(test::hf_eager(), mode, 1, 64));
  };
  EXPECT_THAT(
      said(StepMode::training),
      HasSubstr("model.hidden_dropout: is not simulated with the modules of hf-eager; use 0"));
  EXPECT_EQ(said(StepMode::inference).find("hidden_dropout"), std::string::npos);
}

TEST_P(SwitchGraph, HuggingFacesModulesRefuseItByName) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 64);
  EXPECT_THAT(refusal(GetParam(), step),
              HasSubstr("is not simulated with the modules of hf-eager"));
}

INSTANTIATE_TEST_SUITE_P(Switches, SwitchGraph, ::testing::ValuesIn(one_of_each_switch()),
                         [](const auto& test) { return test.param.name; });

// Kernels and memory.

TEST(Window, OnlyWindowLayersCountWithinIt) {
  const ModelGraph graph = build_model_graph(biased_experts(), megatron_step());
  const Kernel& near = op(block(graph, "window_layer").forward, "attention.flash").kernel;
  const Kernel& far = op(block(graph, "layer").forward, "attention.flash").kernel;
  EXPECT_EQ(near.attention.window, 128);
  EXPECT_EQ(far.attention.window, 0);
  EXPECT_EQ(far.flops.value(), 4.0 * 4 * 64 * 512 * 512 / 2);
  EXPECT_EQ(near.flops.value(), 4.0 * 4 * 64 * (512 * 128 - 128 * 128 / 2));
  // The first layer has the window, every second has none.
  EXPECT_EQ(graph.at(1).name, "window_layer");
  EXPECT_EQ(graph.at(2).name, "layer");
  EXPECT_EQ(block(graph, "layer").saved, block(graph, "window_layer").saved)
      << "fused attention saves q, k, v and the output whatever it sees";
}

TEST(Window, PatternsOfLayers) {
  ModelSpec m = small();
  m.window = 64;
  m.full_every = 6;  // Gemma 3
  EXPECT_TRUE(has_window(m, 0));
  EXPECT_TRUE(has_window(m, 4));
  EXPECT_FALSE(has_window(m, 5));
  EXPECT_TRUE(has_window(m, 6));
  m.full_every = 0;
  m.full_first = 3;  // Qwen 2
  EXPECT_FALSE(has_window(m, 2));
  EXPECT_TRUE(has_window(m, 3));
  m.window = 0;
  EXPECT_FALSE(has_window(m, 3));
}

TEST(LatentAttention, ProductsByHand) {
  const ModelGraph graph = build_model_graph(latent(), megatron_step());
  const Block& layer = block(graph, "dense_layer");
  const double rows = kBatch * kSequence;
  const double attention = 2.0 * 4 * (64 + 32) * 512 * 512 / 2;
  const double products = 2 * rows *
                          (256 * 160 + 160 * 4 * 64 + 256 * (96 + 16) + 96 * 4 * (48 + 32) +
                           4 * 32 * 256 + 3 * 256 * 512);
  EXPECT_EQ(total(layer.forward).gemm_flops.value(), products + attention);
  const double backward_attention = 2.0 * 4 * (3 * 64 + 2 * 32) * 512 * 512 / 2;
  EXPECT_EQ(total(layer.backward).gemm_flops.value(), 2 * products + backward_attention);
}

TEST(LatentAttention, SavedBytesByHand) {
  const ModelGraph graph = build_model_graph(latent(), megatron_step());
  const std::int64_t rows = kBatch * kSequence;
  // In 16 bit, per token: the layer's input, its norm's output, both ranks ahead of and behind
  // their norms, q and k of 4 * 64, v and the attention's output of 4 * 32; the middle, its norm's
  // output, up of 2 * 512, down's input of 512. In 32 bit: a factor per row of four norms, a sum
  // per row and head.
  const std::int64_t halves =
      256 + 256 + 2 * 160 + 2 * 96 + 2 * 4 * 64 + 2 * 4 * 32 + 256 + 256 + 2 * 512 + 512;
  const std::int64_t words = 4 + 4;
  EXPECT_EQ(block(graph, "dense_layer").saved.value(), rows * (2 * halves + 4 * words));
}

TEST(SharedExperts, AddAFeedForwardToEverySparseLayer) {
  ModelSpec without = latent();
  without.shared_ffn = 0;
  const double added =
      total(block(build_model_graph(latent(), megatron_step()), "layer").forward)
          .gemm_flops.value() -
      total(block(build_model_graph(without, megatron_step()), "layer").forward).gemm_flops.value();
  EXPECT_EQ(added, 2.0 * 512 * 3 * 256 * 256);
}

TEST(FurtherPrediction, IsALayerAndAHeadMore) {
  ModelSpec m = latent();
  m.mtp_layers = 1;
  const StepOptions step = megatron_step();
  const ModelGraph with = build_model_graph(m, step);
  const ModelGraph without = build_model_graph(latent(), step);
  EXPECT_EQ(with.parameters() - without.parameters() + m.experts, llama_mtp_parameters(m));
  const double more = total(block(with, "head").forward).gemm_flops.value() -
                      total(block(without, "head").forward).gemm_flops.value();
  const double layer = total(block(without, "layer").forward).gemm_flops.value();
  EXPECT_EQ(more, layer + 2.0 * 512 * 2 * 256 * 256 + 2.0 * 512 * 256 * 1024);
}

TEST(LowRankAdapters, AreAllThatIsTrained) {
  StepOptions step = megatron_step();
  step.lora_rank = 16;
  const ModelSpec m = small();
  const ModelGraph graph = build_model_graph(m, step);
  // qkv 256 -> 768, output 256 -> 256, up 256 -> 1024, down 512 -> 256
  const std::int64_t layer = 16 * (256 + 768 + 256 + 256 + 256 + 1024 + 512 + 256);
  EXPECT_EQ(graph.parameters(), 2 * layer);
  // In 16 bit; the model without them is in buffers.
  Bytes frozen;
  for (const int index : graph.order)
    frozen += graph.blocks[static_cast<std::size_t>(index)].buffers;
  EXPECT_EQ(frozen.value(), 2 * parameter_count(m));
}

TEST(LowRankAdapters, SpareTheProductsOfWeightGradients) {
  StepOptions step = megatron_step();
  const Block full = block(build_model_graph(small(), step), "layer");
  step.lora_rank = 16;
  const Block adapted = block(build_model_graph(small(), step), "layer");
  const double weights = 2.0 * 512 * (256 * 768 + 256 * 256 + 256 * 1024 + 512 * 256);
  const double adapters = 2.0 * 512 * 16 * (256 + 768 + 256 + 256 + 256 + 1024 + 512 + 256);
  EXPECT_EQ(total(adapted.forward).gemm_flops.value(),
            total(full.forward).gemm_flops.value() + adapters);
  EXPECT_EQ(total(adapted.backward).gemm_flops.value(),
            total(full.backward).gemm_flops.value() - weights + 2 * adapters);
  // The adapters read what the frozen products read, and keep their own 16 columns of it.
  EXPECT_EQ(adapted.saved, full.saved + Bytes(4 * 512 * 16 * 2));
  step.lora_targets = LoraTargets::attention;
  const Block attention = block(build_model_graph(small(), step), "layer");
  EXPECT_LT(attention.saved, full.saved) << "inputs of frozen products are not kept for them";
}

TEST(LowRankAdapters, OfAttentionAlone) {
  StepOptions step = megatron_step();
  step.lora_rank = 8;
  step.lora_targets = LoraTargets::attention;
  EXPECT_EQ(build_model_graph(small(), step).parameters(), 2 * 8 * (256 + 768 + 256 + 256));
}

TEST(LowRankAdapters, OfOtherFamiliesAreRefused) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 64);
  step.lora_rank = 8;
  EXPECT_THAT(refusal(test::opt_1_3b(), step), HasSubstr("is simulated for family llama"));
}

TEST(Switches, RefusedWhereTheFrameworkHasThemNot) {
  StepOptions step = megatron_step();
  step.framework.attention = AttentionKernels::unfused;
  EXPECT_THAT(refusal(biased_experts(), step), HasSubstr("unfused attention has no sinks"));
  StepOptions ring = megatron_step();
  ring.layout.context = 2;
  EXPECT_THAT(refusal(biased_experts(), ring), HasSubstr("use all_gather or ulysses"));
  ring.context_attention = ContextAttention::all_gather;
  EXPECT_EQ(refusal(biased_experts(), ring), "");
}

}  // namespace
}  // namespace tessera
