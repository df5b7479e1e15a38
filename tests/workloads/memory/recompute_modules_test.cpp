// Modules that backward runs again: what they no longer keep, and what runs twice, by hand.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 1024, kHidden = 2048, kHeads = 16, kFfn = 1408, kShared = 2816;
constexpr std::int64_t kNope = 128, kRope = 64, kValue = 128, kRank = 512, kPerToken = 6;

/// Moonlight, narrower in nothing but its number of layers.
ModelSpec latent_mixture() {
  ModelSpec model = test::llama2_7b();
  model.layers = 4;
  model.hidden = kHidden;
  model.heads = model.kv_heads = kHeads;
  model.head_dim = kNope + kRope;
  model.rope_dim = kRope;
  model.v_head_dim = kValue;
  model.kv_rank = kRank;
  model.ffn = 11264;
  model.experts = 64;
  model.experts_per_token = kPerToken;
  model.expert_ffn = kFfn;
  model.shared_ffn = kShared;
  return model;
}

StepOptions again(const std::vector<std::string>& modules) {
  FrameworkProfile profile = test::megatron();
  profile.attention_copies = false;  // they would keep copies of what runs again
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(profile, StepMode::training, 1, kSequence));
  step.recompute = modules.empty() ? Recompute::none : Recompute::selective;
  step.recompute_modules = modules;
  return step;
}

Block layer_with(const std::vector<std::string>& modules) {
  return build_model_graph(latent_mixture(), again(modules)).blocks[1];
}

std::int64_t no_longer_saved(const std::string& module) {
  return (layer_with({}).saved - layer_with({module}).saved).value();
}

std::int64_t repeated(const Block& layer, const std::string& part) {
  return std::ranges::count_if(layer.backward, [&](const GraphOp& op) {
    return op.kind == GraphOpKind::kernel && op.recomputed &&
           op.name.find(part) != std::string::npos;
  });
}

TEST(RecomputedModules, OfActivationsOfExpertsKeepNoProductOfTheGate) {
  EXPECT_EQ(no_longer_saved("moe_act"), 2 * kSequence * kPerToken * kFfn);
  const Block layer = layer_with({"moe_act"});
  EXPECT_EQ(repeated(layer, "experts.swiglu"), 1);
  EXPECT_EQ(repeated(layer, ""), 1);
}

TEST(RecomputedModules, OfLatentAttentionKeepNoQueriesKeysAndValues) {
  const std::int64_t per_head = 2 * (kNope + kRope) + kValue;
  // The key that all heads share has to wait instead.
  EXPECT_EQ(no_longer_saved("mla_up_proj"), 2 * kSequence * (kHeads * per_head - kRope));
  const Block layer = layer_with({"mla_up_proj"});
  EXPECT_EQ(repeated(layer, "attention.kv_up"), 1);
  EXPECT_EQ(repeated(layer, "attention.kv_down"), 0);
  EXPECT_EQ(repeated(layer, "attention.flash"), 0);
}

TEST(RecomputedModules, OfNormsKeepNeitherOutput) {
  // Nor the 4 bytes per row of their statistics.
  EXPECT_EQ(no_longer_saved("layernorm"), 2 * kSequence * (2 * kHidden + 4));
  EXPECT_EQ(repeated(layer_with({"layernorm"}), ""), 2);
}

TEST(RecomputedModules, OfWholeLayersOfExpertsKeepTheirInputAlone) {
  const Block layer = layer_with({"moe"});
  // Of the experts: their rows, both branches and the gated product, results, per row; the shared
  // ones the same without results. What lies around takes a hundredth of it.
  const double of_experts = 2.0 * kSequence * kPerToken * (2 * kHidden + 3 * kFfn);
  const double of_shared = 2.0 * kSequence * 3 * kShared;
  EXPECT_NEAR(static_cast<double>(no_longer_saved("moe")), of_experts + of_shared,
              0.05 * of_experts);
  EXPECT_EQ(repeated(layer, "experts.up"), 1);
  EXPECT_EQ(repeated(layer, "attention"), 0);
}

TEST(RecomputedModules, AddUp) {
  const std::int64_t both =
      (layer_with({}).saved - layer_with({"moe_act", "mla_up_proj"}).saved).value();
  EXPECT_EQ(both, no_longer_saved("moe_act") + no_longer_saved("mla_up_proj"));
}

TEST(RecomputedModules, AreModelFlopsOnce) {
  const Program plain = build_program(latent_mixture(), again({}));
  const Program repeats = build_program(latent_mixture(), again({"mla_up_proj"}));
  EXPECT_EQ(plain.model_flops, repeats.model_flops);
  const double up =
      2.0 * kSequence * kHeads * (kHidden * (kNope + kRope) + kRank * (kNope + kValue));
  EXPECT_NEAR((repeats.hardware_flops - repeats.model_flops).value(), 4 * up, 1);
}

TEST(RecomputedModules, OfOtherNamesAreRefused) {
  EXPECT_THAT(test::refusal(latent_mixture(), again({"dropout"})),
              HasSubstr("dropout is not simulated"));
}

TEST(RecomputedLayers, AreTheFirstOfEveryModelChunk) {
  ModelSpec model = test::llama2_7b();
  model.layers = 8;
  StepOptions step = test::in(Precision::bf16,
                              test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
  step.recompute = Recompute::full;
  step.recompute_layers = 1;
  step.layout.pipeline = 2;
  step.layout.virtual_stages = 2;
  step.schedule = PipelineSchedule::interleaved_1f1b;
  step.global_batch = 4;
  const ModelGraph graph = build_model_graph(model, step);
  std::string layers;
  for (std::size_t p = 0; p < graph.order.size(); ++p)
    if (graph.layer_numbers[p] != kNoLayer)
      layers += graph.at(static_cast<int>(p)).name.starts_with("recomputed") ? "r" : "k";
  EXPECT_EQ(layers, "rkrkrkrk");
}

}  // namespace
}  // namespace tessera
