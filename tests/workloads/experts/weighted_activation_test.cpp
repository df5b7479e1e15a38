// A token's weights behind an activation whose kernel does not multiply by them (GELU), by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

constexpr std::int64_t kSequence = 512, kExperts = 8, kPerToken = 2, kFfn = 2048;
constexpr std::int64_t kRows = kSequence * kPerToken, kAll = kRows * kFfn;

/// Experts of GPT's: two products around a GELU, without a gate.
ModelSpec mixture(Activation activation) {
  ModelSpec model = test::gpt2_large();
  model.layers = 1;
  model.hidden = 512;
  model.heads = model.kv_heads = 8;
  model.head_dim = 64;
  model.ffn = kFfn;
  model.experts = kExperts;
  model.experts_per_token = kPerToken;
  model.activation = activation;
  return model;
}

Block layer(const ModelSpec& model, bool weights_in_activation) {
  StepOptions step = test::in(Precision::bf16,
                              test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
  step.framework.weights_in_activation = weights_in_activation;
  return build_model_graph(model, step).blocks[1];
}

std::int64_t bytes_of(const std::vector<GraphOp>& ops, const std::string& part) {
  std::int64_t bytes = 0;
  for (const GraphOp& op : ops)
    if (op.name == "mlp.experts.weigh" + part) bytes += op.kernel.bytes().value();
  return bytes;
}

TEST(WeightedActivation, OfGeluIsAProductInFp32AndACast) {
  const Block block = layer(mixture(Activation::gelu_new), true);
  EXPECT_EQ(bytes_of(block.forward, ""), (2 + 4) * kAll + 4 * kRows);
  EXPECT_EQ(bytes_of(block.forward, ".to"), (4 + 2) * kAll);
  EXPECT_EQ(bytes_of(block.backward, ".to.backward"), (2 + 4) * kAll);
  EXPECT_EQ(bytes_of(block.backward, ".times_weights"), (4 + 4) * kAll + 4 * kRows);
  EXPECT_EQ(bytes_of(block.backward, ".rows.to"), (4 + 2) * kAll);
  EXPECT_EQ(bytes_of(block.backward, ".times_rows"), (4 + 2 + 4) * kAll);
  EXPECT_EQ(bytes_of(block.backward, ".weights.sum"), 4 * kAll + 4 * kRows);
}

TEST(WeightedActivation, OfGeluKeepsWhatTheActivationGaveAndNotTheResults) {
  const ModelSpec model = mixture(Activation::gelu_new);
  // Rows of experts' results, 512 wide, that combine_experts() reads again, for those of the GELU.
  EXPECT_EQ(layer(model, true).saved - layer(model, false).saved,
            Bytes(2 * kRows * (kFfn - model.hidden)));
}

TEST(WeightedActivation, OfAGateIsInItsKernel) {
  const ModelSpec model = mixture(Activation::swiglu);
  const Block block = layer(model, true);
  EXPECT_EQ(bytes_of(block.forward, ""), 0);
  EXPECT_EQ(block.saved - layer(model, false).saved, Bytes(-2 * kRows * model.hidden));
}

TEST(WeightedActivation, RunsAgainWithTheActivation) {
  StepOptions step = test::in(Precision::bf16,
                              test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
  step.framework.weights_in_activation = true;
  const ModelSpec model = mixture(Activation::gelu_new);
  const Block kept = build_model_graph(model, step).blocks[1];
  step.recompute = Recompute::selective;
  step.recompute_modules = {"moe_act"};
  const Block again = build_model_graph(model, step).blocks[1];
  EXPECT_EQ(bytes_of(again.backward, ""), bytes_of(kept.forward, ""));
  // What the GELU gave, and what the second product reads.
  EXPECT_EQ(kept.saved - again.saved, Bytes(2 * 2 * kAll));
}

}  // namespace
}  // namespace tessera
