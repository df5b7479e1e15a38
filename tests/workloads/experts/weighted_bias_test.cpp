// Biases behind the experts, weighed by tokens (GPT-OSS), by hand.
#include "workloads/ops/experts/weighted_bias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

constexpr std::int64_t kSequence = 512, kExperts = 8, kPerToken = 2;

ModelSpec biased() {
  ModelSpec model = test::llama2_7b();
  model.layers = 1;
  model.hidden = 1024;
  model.heads = model.kv_heads = 16;
  model.head_dim = 64;
  model.ffn = 512;
  model.experts = kExperts;
  model.experts_per_token = kPerToken;
  model.expert_bias = true;
  return model;
}

Block layer(bool weights_in_activation) {
  StepOptions step = test::in(Precision::bf16,
                              test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
  step.framework.weights_in_activation = weights_in_activation;
  return build_model_graph(biased(), step).blocks[1];
}

/// Bytes of all kernels of a name.
std::int64_t bytes_of(const std::vector<GraphOp>& ops, const std::string& part,
                      const std::string& product = "down") {
  std::int64_t bytes = 0;
  for (const GraphOp& op : ops)
    if (op.name == "mlp.experts." + product + ".add_bias" + part)
      bytes += op.kernel.bytes().value();
  return bytes;
}

TEST(WeightedBias, IsMultipliedAndAddedExpertByExpertInFp32) {
  const Block block = layer(true);
  const std::int64_t rows = kSequence * kPerToken, all = rows * 1024;
  const std::int64_t biases = kExperts * 1024 * 2;
  EXPECT_EQ(bytes_of(block.forward, ".weigh"), 4 * all + 4 * rows + biases);
  EXPECT_EQ(bytes_of(block.forward, ".add"), (2 + 4 + 4) * all);
  EXPECT_EQ(bytes_of(block.forward, ".cat"), (4 + 4) * all);
  EXPECT_EQ(bytes_of(block.forward, ".to"), (4 + 2) * all);
  EXPECT_EQ(bytes_of(block.backward, ".to.backward"), (2 + 4) * all);
  EXPECT_EQ(bytes_of(block.backward, ".rows.to"), (4 + 2) * all);
  EXPECT_EQ(bytes_of(block.backward, ".split.backward"), (2 + 2) * all);
  EXPECT_EQ(bytes_of(block.backward, ".times_weights"), (4 + 4) * all + 4 * rows);
  EXPECT_EQ(bytes_of(block.backward, ".bias.sum"), 4 * all + biases);
  EXPECT_EQ(bytes_of(block.backward, ".times_bias"), (4 + 4) * all + biases);
  EXPECT_EQ(bytes_of(block.backward, ".weights.sum"), 4 * all + 4 * rows);
}

TEST(WeightedBias, AheadOfTheActivationIsAddedExpertByExpertWhereProductsHaveNone) {
  StepOptions step = test::in(Precision::bf16,
                              test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
  step.framework.weights_in_activation = step.framework.expert_bias_apart = true;
  const Block block = build_model_graph(biased(), step).blocks[1];
  const std::int64_t all = kSequence * kPerToken * 2 * 512;  // gate and up
  const std::int64_t biases = kExperts * 2 * 512 * 2;
  EXPECT_EQ(bytes_of(block.forward, ".add", "up"), (2 + 2) * all + biases);
  EXPECT_EQ(bytes_of(block.forward, ".cat", "up"), (2 + 2) * all);
  EXPECT_EQ(bytes_of(block.backward, ".bias.sum", "up"), 2 * all + biases);
  EXPECT_EQ(bytes_of(block.backward, ".split.backward", "up"), (2 + 2) * all);
  EXPECT_EQ(bytes_of(layer(true).forward, ".add", "up"), 0) << "Megatron's epilogues add it";
  EXPECT_EQ(block.parameters, layer(true).parameters);
  EXPECT_EQ(block.saved, layer(true).saved);
}

TEST(WeightedBias, StaysInTheEpilogueWhereResultsAreWeighed) {
  const Block block = layer(false);
  EXPECT_EQ(bytes_of(block.forward, ".add"), 0);
  EXPECT_EQ(block.parameters, layer(true).parameters);
}

}  // namespace
}  // namespace tessera
