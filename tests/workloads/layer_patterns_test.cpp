// Models whose layers differ by a pattern, packed documents of unequal lengths, and T5: parameters,
// FLOPs and saved bytes against counts by hand.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/packed_documents.h"

namespace tessera {
namespace {

using test::refusal;
using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 512;

/// Four layers in Llama 4's order: three with chunks of 128 tokens, one that sees all without
/// positions; every second has 4 experts of 128, one per token, and a shared one.
ModelSpec llama4() {
  ModelSpec m = test::llama2_7b();
  m.name = "small";
  m.layers = 4;
  m.hidden = 256;
  m.heads = 4;
  m.kv_heads = 2;
  m.head_dim = 64;
  m.ffn = 512;
  m.vocab = 1024;
  m.window = 128;
  m.window_chunks = true;
  m.attention_pattern = "wwwn";
  m.qk_norm = m.qk_norm_plain = true;
  m.experts = 4;
  m.experts_per_token = 1;
  m.expert_ffn = m.shared_ffn = 128;
  m.expert_pattern = "-E";
  m.router_sigmoid = true;
  return m;
}

StepOptions megatron_step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

const Block& block(const ModelGraph& graph, const std::string& name) {
  for (const Block& b : graph.blocks) {
    if (b.name == name) return b;
  }
  throw std::runtime_error("no block " + name);
}

int kernels_named(const Block& b, const std::string& part) {
  return static_cast<int>(std::ranges::count_if(b.forward, [&](const GraphOp& op) {
    return op.kind == GraphOpKind::kernel && op.name.find(part) != std::string::npos;
  }));
}

TEST(LayerPattern, EachLayerIsTheBlockThatItsLettersSay) {
  const ModelGraph graph = build_model_graph(llama4(), megatron_step());
  const char* expected[] = {"dense_window_layer", "window_layer", "dense_window_layer",
                            "unturned_layer"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(graph.at(i + 1).name, expected[i]);
}

TEST(LayerPattern, ParametersByHand) {
  const ModelSpec m = llama4();
  const std::int64_t attention = 2 * 256 * 4 * 64 + 2 * 256 * 2 * 64;  // norms without weights
  const std::int64_t dense = 3 * 256 * 512;
  const std::int64_t sparse = 4 * (3 * 256 * 128 + 256) + 3 * 256 * 128;
  const std::int64_t count =
      2 * 1024 * 256 + 256 + 4 * (attention + 2 * 256) + 2 * dense + 2 * sparse;
  EXPECT_EQ(parameter_count(m), count);
  EXPECT_EQ(build_model_graph(m, megatron_step()).parameters(), count);
}

/// Chunks see themselves alone: 512 / 128 triangles of 128 * 128 / 2 pairs.
TEST(LayerPattern, ProductsByHand) {
  const ModelGraph graph = build_model_graph(llama4(), megatron_step());
  const double products = 2.0 * kSequence * (2 * 256 * 4 * 64 + 2 * 256 * 2 * 64 + 3 * 256 * 512);
  const double chunks = 4.0 * 4 * 64 * 4 * 128 * 128 / 2;
  EXPECT_EQ(total(block(graph, "dense_window_layer").forward).gemm_flops.value(),
            products + chunks);
  const double experts =
      2.0 * kSequence * (2 * 256 * 4 * 64 + 2 * 256 * 2 * 64 + 256 * 4 + 2 * 3 * 256 * 128);
  const double all = 4.0 * 4 * 64 * 512 * 512 / 2;
  EXPECT_EQ(total(block(graph, "unturned_layer").forward).gemm_flops.value(), experts + all);
}

TEST(LayerPattern, LayersWithoutPositionsTurnNothing) {
  const ModelGraph graph = build_model_graph(llama4(), megatron_step());
  EXPECT_EQ(kernels_named(block(graph, "window_layer"), "rotary"), 2) << "queries and keys";
  EXPECT_EQ(kernels_named(block(graph, "unturned_layer"), "rotary"), 0);
  EXPECT_EQ(kernels_named(block(graph, "window_layer"), "attention.q_norm"), 1);
  EXPECT_EQ(kernels_named(block(graph, "unturned_layer"), "attention.q_norm"), 0)
      << "norms without weights are of layers with positions";
}

/// In 16 bit, per token: the layer's input, its norm's output, what the norms of heads read (q of 4
/// * 64, k of 2 * 64) and give to attention through the rotary kernel, v of 2 * 64, attention's
/// output of 4 * 64; the middle, its norm's output, up of 2 * 512, down's input of 512. In 32 bit:
/// a factor per row of two norms, a sum per row and head.
TEST(LayerPattern, SavedBytesByHand) {
  const ModelGraph graph = build_model_graph(llama4(), megatron_step());
  const std::int64_t halves = 256 + 256 + 2 * (256 + 128) + 128 + 256 + 256 + 256 + 1024 + 512;
  EXPECT_EQ(block(graph, "dense_window_layer").saved.value(), kSequence * (2 * halves + 4 * 6));
}

TEST(LayerPattern, PatternsThatContradictTheModelAreRefused) {
  const auto refused = [](auto change) {
    ModelSpec m = llama4();
    change(m);
    return refusal(m, megatron_step());
  };
  EXPECT_EQ(refused([](ModelSpec&) {}), "");
  EXPECT_THAT(refused([](ModelSpec& m) { m.attention_pattern = "wwx"; }),
              HasSubstr("model.attention_pattern = wwx has other letters than wfn"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.attention_pattern = "wwwnf"; }),
              HasSubstr("model.attention_pattern has 5 letters for 4 layers"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.window = 0; }),
              HasSubstr("model.attention_pattern = wwwn and model.window = 0 contradict"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.full_every = 2; }),
              HasSubstr("so do full_every and full_first"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.expert_pattern = "--"; }),
              HasSubstr("model.expert_pattern = -- and model.experts = 4 contradict"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.dense_layers = 1; }),
              HasSubstr("so do layer_pattern and dense_layers"));
  EXPECT_THAT(refused([](ModelSpec& m) { m.qk_norm = false; }),
              HasSubstr("model.qk_norm_plain takes weights from norms"));
}

/// A layer of one branch has its norm ahead and nothing else: what it would drop is refused.
TEST(LayerPattern, LayersOfOneBranchRefuseWhatTheyHaveNot) {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.layer_pattern = "*-";
  EXPECT_EQ(refusal(m, megatron_step()), "");
  const auto refused = [&](auto change) {
    ModelSpec changed = m;
    change(changed);
    return refusal(changed, megatron_step());
  };
  EXPECT_THAT(refused([](ModelSpec& x) { x.output_bias = true; }),
              HasSubstr("model.output_bias: is not simulated with model.layer_pattern"));
  EXPECT_THAT(refused([](ModelSpec& x) { x.norm_placement = NormPlacement::both; }),
              HasSubstr("model.norm_placement: is not simulated with model.layer_pattern"));
  EXPECT_THAT(refused([](ModelSpec& x) { x.hidden_dropout = 0.1; }),
              HasSubstr("model.hidden_dropout: is not simulated with model.layer_pattern"));
}

TEST(LayerPattern, BranchesOfPatternsAreScaled) {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.layer_pattern = "*-";
  const auto scales = [&](const char* name) {
    return kernels_named(block(build_model_graph(m, megatron_step()), name), "residual.scale");
  };
  EXPECT_EQ(scales("attention_layer"), 0);
  m.residual_scale = true;
  EXPECT_EQ(scales("attention_layer"), 1);
  EXPECT_EQ(scales("feed_forward_layer"), 1);
}

// Packed documents.

TEST(PackedDocuments, OfEqualLengthCountAsTheyAre) {
  StepOptions step = megatron_step();
  EXPECT_EQ(equal_document(step), 0);
  step.mean_document = 128;
  EXPECT_EQ(equal_document(step), 128);
  step.longest_document = 128;
  EXPECT_NEAR(equal_document(step), 128, 1e-9) << "none is shorter than the mean";
}

/// E[L^2] / E[L]: of lengths spread evenly up to M it is (M^2 / 3) / (M / 2); of an exponential
/// 2 m^2 / m.
TEST(PackedDocuments, LongOnesWeighMore) {
  StepOptions step = megatron_step();
  step.mean_document = 150;
  step.longest_document = 300;
  EXPECT_NEAR(equal_document(step), 200, 1e-6);
  step.mean_document = 1;
  step.longest_document = 512;
  EXPECT_NEAR(equal_document(step), 2, 1e-6);
  double before = 0;
  for (step.mean_document = 2; step.mean_document < 300; step.mean_document += 7) {
    step.longest_document = 300;
    const double now = equal_document(step);
    EXPECT_GT(now, before);
    EXPECT_GT(now, step.mean_document);
    EXPECT_LE(now, 300);
    before = now;
  }
}

TEST(PackedDocuments, AttentionCountsTheirPairs) {
  ModelSpec m = test::llama2_7b();
  m.layers = 1;
  StepOptions step = megatron_step();
  step.mean_document = 150;
  step.longest_document = 300;
  const auto flops = [&] {
    const ModelGraph graph = build_model_graph(m, step);
    for (const GraphOp& op : block(graph, "layer").forward)
      if (op.name == "attention.flash") return op.kernel.flops.value();
    return 0.0;
  };
  EXPECT_NEAR(flops(), 4.0 * 32 * 128 * 512 * 200 / 2, 1);
  step.longest_document = 0;
  EXPECT_NEAR(flops(), 4.0 * 32 * 128 * 512 * 150 / 2, 1);
}

TEST(PackedDocuments, LengthsThatContradictAreRefused) {
  ModelSpec m = test::llama2_7b();
  StepOptions step = megatron_step();
  step.longest_document = 100;
  EXPECT_THAT(refusal(m, step), HasSubstr("training.longest_document: is the longest"));
  step.mean_document = 200;
  EXPECT_THAT(refusal(m, step), HasSubstr("training.longest_document: is the longest"));
  step.longest_document = 600;
  EXPECT_THAT(refusal(m, step), HasSubstr("training.longest_document: exceeds the sequence"));
}

// T5.

/// A layer each way, two heads of 32.
ModelSpec t5(Activation activation) {
  ModelSpec m;
  m.name = "t5";
  m.family = ModelFamily::switch_transformer;
  m.layers = m.encoder_layers = 1;
  m.hidden = 64;
  m.heads = m.kv_heads = 2;
  m.head_dim = 32;
  m.ffn = 128;
  m.vocab = 100;
  m.activation = activation;
  m.hidden_dropout = m.attention_dropout = 0;
  return m;
}

TEST(T5, ParametersAndProductsByHand) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 16);
  for (const bool gated : {false, true}) {
    const ModelSpec m = t5(gated ? Activation::geglu : Activation::relu);
    EXPECT_EQ(refusal(m, step), "");
    const std::int64_t attention = 4 * 64 * 64, feed = (gated ? 3 : 2) * 64 * 128;
    const ModelGraph graph = build_model_graph(m, step);
    const std::int64_t count = 100 * 64 + (attention + feed + 2 * 64)  // encoder
                               + (2 * attention + feed + 3 * 64)       // decoder
                               + 2 * (64 + 32 * 2);                    // norms, positions
    EXPECT_EQ(parameter_count(m), count);
    EXPECT_EQ(graph.parameters(), count);
    double flops = 0;
    for (const int index : graph.order)
      flops += total(graph.blocks[static_cast<std::size_t>(index)].forward).gemm_flops.value();
    const double scores = 2 * 2.0 * 2 * 16 * 16 * 32;  // q k^T and weights v
    const auto weights = static_cast<double>(3 * attention + 2 * feed + 64 * 100);
    EXPECT_EQ(flops, 2.0 * 16 * weights + 3 * scores);
  }
}

/// In 32 bit, of 16 tokens: what the gate adds to what backward needs. Its tanh is a chain of eight
/// kernels, so only bounds: the gate's and the up projection's results are both there.
TEST(T5, TheGateKeepsBothBranches) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 16);
  const auto saved = [&](Activation activation) {
    return block(build_model_graph(t5(activation), step), "encoder.dense_layer").saved.value();
  };
  EXPECT_GE(saved(Activation::geglu) - saved(Activation::relu), 2 * 16 * 128 * 4);
}

}  // namespace
}  // namespace tessera
