// Adapters beside the linear layers of transformers' Llama, as peft has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTokens = 512, kRank = 16, kHidden = 256, kFfn = 512;

ModelSpec small() {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = kHidden;
  m.heads = m.kv_heads = 4;
  m.head_dim = 64;
  m.ffn = kFfn;
  m.vocab = 1024;
  return m;
}

StepOptions full() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::hf_eager(), StepMode::training, 1, kTokens));
}
StepOptions adapted(LoraTargets targets = LoraTargets::all) {
  StepOptions step = full();
  step.lora_rank = kRank;
  step.lora_targets = targets;
  return step;
}

Block layer(const StepOptions& step) {
  return build_model_graph(small(), step).blocks.at(1);
}

TEST(PeftAdapters, TrainTwoFactorsBesideEachOfSevenLayers) {
  // q, k, v and output; gate and up; down.
  const std::int64_t attention = 4 * (kHidden + kHidden);
  const std::int64_t feed_forward = 2 * (kHidden + kFfn) + (kFfn + kHidden);
  EXPECT_EQ(layer(adapted()).parameters, kRank * (attention + feed_forward));
  EXPECT_EQ(layer(adapted()).parameter_tensors, 2 * 7);
  EXPECT_EQ(layer(adapted(LoraTargets::attention)).parameters, kRank * attention);
}

TEST(PeftAdapters, StandBesideTheLayersThatAreNamed) {
  StepOptions step = adapted();
  step.lora_modules = {"q_proj", "v_proj", "down_proj"};
  EXPECT_EQ(layer(step).parameters, kRank * (2 * (kHidden + kHidden) + (kFfn + kHidden)));
  EXPECT_EQ(total(layer(step).forward).kernels, total(layer(full()).forward).kernels + 3 * 4);
}

TEST(PeftAdapters, FreezeEmbeddingAndHead) {
  const ModelGraph graph = build_model_graph(small(), adapted());
  EXPECT_EQ(graph.blocks.at(0).parameters, 0);
  EXPECT_EQ(graph.blocks.at(2).parameters, 0);
}

TEST(PeftAdapters, RunTwoProductsACopyAndASumMore) {
  EXPECT_EQ(total(layer(adapted()).forward).kernels, total(layer(full()).forward).kernels + 7 * 4);
  EXPECT_EQ(total(layer(adapted()).forward).gemm_flops.value(),
            total(layer(full()).forward).gemm_flops.value() +
                2.0 * kTokens * static_cast<double>(layer(adapted()).parameters));
}

// Of a frozen layer backward needs the data gradient alone: half of the products.
TEST(PeftAdapters, LeaveOutTheGradientsOfWeights) {
  const double weights = 4.0 * kHidden * kHidden + 3.0 * kHidden * kFfn;
  const double adapters = static_cast<double>(layer(adapted()).parameters);
  EXPECT_EQ(total(layer(adapted()).backward).gemm_flops.value(),
            total(layer(full()).backward).gemm_flops.value() - 2.0 * kTokens * weights +
                4.0 * kTokens * adapters);
}

// Inputs of layers are held for the factors; the narrow results are new. A norm's rows are held for
// the gradient of its weight alone, which is frozen.
TEST(PeftAdapters, HoldTheNarrowResults) {
  EXPECT_EQ(layer(adapted()).saved,
            layer(full()).saved + Bytes(2 * 7 * kTokens * kRank - 2 * 2 * kTokens * kHidden));
}

TEST(PeftAdapters, AreRefusedWhereLayersAreOthersThanThese) {
  StepOptions split = adapted();
  split.layout.tensor = 2;
  EXPECT_THAT(test::refusal(small(), split), HasSubstr("use parallelism.tensor: 1"));
  StepOptions joined = adapted();
  joined.framework.fused_gate = true;
  EXPECT_THAT(test::refusal(small(), joined), HasSubstr("which are one layer here"));
  StepOptions dora = adapted();
  dora.dora = true;
  EXPECT_THAT(test::refusal(small(), dora), HasSubstr("training.dora"));
  ModelSpec experts = small();
  experts.experts = 4;
  experts.experts_per_token = 2;
  EXPECT_THAT(test::refusal(experts, adapted()), HasSubstr("of models with experts"));
  EXPECT_EQ(test::refusal(small(), adapted()), "");
}

}  // namespace
}  // namespace tessera
