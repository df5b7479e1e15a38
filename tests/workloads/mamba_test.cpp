// Mamba-2 layers in a pattern: parameters, arithmetic and saved bytes by hand.
#include "workloads/ops/states/mamba.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 1024, kHidden = 2688;
constexpr std::int64_t kMambaHeads = 64, kMambaDim = 64, kState = 128, kGroups = 8;
constexpr std::int64_t kInner = kMambaHeads * kMambaDim;
constexpr std::int64_t kConvolved = kInner + 2 * kGroups * kState;
constexpr std::int64_t kProjected = kInner + kConvolved + kMambaHeads;

/// Nemotron 3 Nano's sizes.
ModelSpec hybrid(const std::string& pattern) {
  ModelSpec model = test::llama2_7b();
  model.layers = std::ssize(pattern);
  model.layer_pattern = pattern;
  model.hidden = kHidden;
  model.heads = 32;
  model.kv_heads = 2;
  model.head_dim = 128;
  model.ffn = 1856;
  model.vocab = 131072;
  model.activation = Activation::relu_squared;
  model.tied_embeddings = false;
  if (pattern.find('E') != std::string::npos) {
    model.experts = 128;
    model.experts_per_token = 6;
    model.shared_ffn = 3712;
  }
  model.mamba_heads = kMambaHeads;
  model.mamba_head_dim = kMambaDim;
  model.mamba_state = kState;
  model.mamba_groups = kGroups;
  return model;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

constexpr std::int64_t kMambaLayer =
    kHidden + kHidden * kProjected + 5 * kConvolved + 3 * kMambaHeads + kInner + kInner * kHidden;
constexpr std::int64_t kAttentionLayer = kHidden + 2 * kHidden * 32 * 128 + 2 * kHidden * 2 * 128;
constexpr std::int64_t kExpertLayer =
    kHidden + 128 * (2 * kHidden * 1856 + kHidden) + 2 * kHidden * 3712;

TEST(Mamba, LayersOfAPatternHaveTheirOwnParameters) {
  const std::int64_t ends = 2 * 131072 * kHidden + kHidden;
  EXPECT_EQ(parameter_count(hybrid("M*E")), ends + kMambaLayer + kAttentionLayer + kExpertLayer);
  const Program program = build_program(hybrid("M*E"), step());
  EXPECT_EQ(program.stages[0].parameters, program.parameters);
}

TEST(Mamba, NemotronNanoHasThePublishedSize) {
  const ModelSpec model = hybrid("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME");
  EXPECT_EQ(std::ranges::count(model.layer_pattern, 'M'), 23);
  EXPECT_EQ(std::ranges::count(model.layer_pattern, 'E'), 23);
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 31.6e9, 0.05e9);  // model card
  EXPECT_NEAR(static_cast<double>(parameter_counts(model).active), 3.6e9, 0.1e9);
}

TEST(Mamba, ScansInChunksOf128) {
  const Block layer = build_model_graph(hybrid("MM"), step()).blocks[1];
  double flops = 0;
  for (const GraphOp& op : layer.forward)
    if (op.name.find("chunk") != std::string::npos && counts_as_model_flops(op.kernel))
      flops += op.kernel.flops.value();
  // Per token: the state written and read (head_dim x state per head), C B^T (128 x state per
  // group), and half of 128 x head_dim per head.
  const double per_token = 2.0 * (2 * kMambaHeads * kMambaDim * kState + kGroups * 128 * kState +
                                  kMambaHeads * 64 * kMambaDim);
  EXPECT_DOUBLE_EQ(flops, kSequence * per_token);
}

TEST(Mamba, SavesTheProjectionAndWhatTheNormReads) {
  const Block layer = build_model_graph(hybrid("MM"), step()).blocks[1];
  // Input and output of the norm ahead, the projection, the scanned rows, and the normed rows by
  // position, all of 2 bytes, and 4 bytes per row.
  const std::int64_t per_token = 2 * kHidden + kProjected + 2 * kInner;
  EXPECT_NEAR(static_cast<double>(layer.saved.value()), 2.0 * kSequence * per_token,
              0.01 * kSequence * static_cast<double>(per_token));
}

TEST(Mamba, BesideAttentionReadsTheSameNormAndHasNoneOfItsOwn) {
  const std::int64_t ends = 2 * 131072 * kHidden + kHidden;
  const std::int64_t both = kMambaLayer - kInner + kAttentionLayer - kHidden;
  const std::int64_t feed_forward = kHidden + 2 * kHidden * 1856;
  EXPECT_EQ(parameter_count(hybrid("H-")), ends + both + feed_forward);
  const Program program = build_program(hybrid("H-"), step());
  EXPECT_EQ(program.stages[0].parameters, program.parameters);
}

TEST(Mamba, BesideAttentionRunsTheKernelsOfBothLayersAndAnAddition) {
  const ModelGraph graph = build_model_graph(hybrid("HM*-"), step());
  const auto kernels = [&](int position) {
    return std::ranges::count(graph.at(position).forward, GraphOpKind::kernel, &GraphOp::kind);
  };
  // One norm, one residual for both; the scan's norm becomes a gate; the addition of the two.
  EXPECT_EQ(kernels(1), kernels(2) + kernels(3) - 2 + 1);
  const auto has = [&](const std::string& name) {
    return std::ranges::count_if(graph.at(1).forward, [&](const GraphOp& op) {
      return op.kind == GraphOpKind::kernel && op.name == name;
    });
  };
  EXPECT_EQ(has("mamba.gate"), 1);
  EXPECT_EQ(has("mamba.norm"), 0);
  EXPECT_EQ(has("mixers.add"), 1);
}

TEST(Mamba, BesideAttentionTakesNoAdapters) {
  StepOptions adapters = step();
  adapters.lora_rank = 8;
  EXPECT_THAT(test::refusal(hybrid("H-"), adapters), HasSubstr("side by side"));
}

TEST(Mamba, PatternsThatLieAreRefused) {
  const auto refusal = [](const ModelSpec& model) { return test::refusal(model, step()); };
  ModelSpec model = hybrid("M*M");
  model.layers = 4;
  EXPECT_THAT(refusal(model), HasSubstr("has 3 letters for 4 layers"));
  EXPECT_THAT(refusal(hybrid("MX")), HasSubstr("other letters"));
  model = hybrid("MM");
  model.mamba_state = 0;
  EXPECT_THAT(refusal(model), HasSubstr("without sizes"));
  model = hybrid("MM");  // sizes of layers that no letter names
  model.layer_pattern.clear();
  for (const char* size : {"mamba_heads", "mamba_head_dim", "mamba_state", "mamba_groups"})
    EXPECT_THAT(refusal(model), HasSubstr("model." + std::string(size) + " is for layers of a"));
  model = hybrid("M*");  // and experts
  model.experts = 4;
  model.experts_per_token = 2;
  EXPECT_THAT(refusal(model), HasSubstr("contradict"));
}

TEST(Mamba, PatternsAndTheirSizesAreRefusedByFamiliesThatHaveNone) {
  ModelSpec model = test::gpt2_large();
  model.layer_pattern = std::string(static_cast<std::size_t>(model.layers), '*');
  model.mamba_state = model.delta_key_dim = 16;
  const std::string refusal = test::refusal(model, step());
  for (const char* field : {"layer_pattern", "mamba_state", "delta_key_dim"})
    EXPECT_THAT(refusal, HasSubstr("model." + std::string(field) + " is for models of family"));
}

}  // namespace
}  // namespace tessera
