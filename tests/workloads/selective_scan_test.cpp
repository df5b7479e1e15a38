// Mamba-1 in a pattern of layers (Jamba): parameters, arithmetic and saved bytes by hand.
#include "workloads/ops/states/selective_scan.h"

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

constexpr std::int64_t kSequence = 1024, kHidden = 4096;
constexpr std::int64_t kChannels = 2 * kHidden, kState = 16, kRank = kHidden / 16;

/// Jamba v0.1's layers.
ModelSpec jamba(const std::string& pattern) {
  ModelSpec model = test::llama2_7b();
  model.layers = std::ssize(pattern);
  model.layer_pattern = pattern;
  model.hidden = kHidden;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.attention_pattern = "n";
  model.ffn = 14336;
  model.vocab = 65536;
  if (pattern.find('E') != std::string::npos) {
    model.experts = 16;
    model.experts_per_token = 2;
  }
  model.mamba_heads = kChannels;
  model.mamba_head_dim = model.mamba_groups = 1;
  model.mamba_state = kState;
  return model;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

Block scan_layer() {
  return build_model_graph(jamba("SS"), step()).blocks[1];
}

TEST(SelectiveScan, JambaHasThePublishedSizeToTheLastParameter) {
  std::string pattern;
  for (int layer = 0; layer < 32; ++layer) {
    pattern += layer % 8 == 4 ? '*' : 'S';
    pattern += layer % 2 == 1 ? 'E' : '-';
  }
  EXPECT_EQ(parameter_count(jamba(pattern)), 51'570'323'328);
  EXPECT_NEAR(static_cast<double>(parameter_counts(jamba(pattern)).active), 12e9, 0.2e9);
  const ModelGraph graph = build_model_graph(jamba("S-SE*E"), step());
  EXPECT_EQ(graph.parameters(), parameter_count(jamba("S-SE*E")));
}

TEST(SelectiveScan, ALayerByHand) {
  const std::int64_t projections = kHidden * 2 * kChannels + kChannels * kHidden;
  const std::int64_t of_states = kChannels * (kRank + 2 * kState) + kRank * kChannels + kChannels;
  const std::int64_t small = 5 * kChannels + kChannels * kState + kChannels + kRank + 2 * kState;
  EXPECT_EQ(scan_layer().parameters, kHidden + projections + of_states + small);
}

double flops_of(const std::vector<GraphOp>& ops, const std::string& name) {
  const auto found = std::ranges::find(ops, name, &GraphOp::name);
  return found == ops.end() ? 0 : found->kernel.flops.value();
}

TEST(SelectiveScan, DoesNineOperationsForEachNumberOfAState) {
  const double forward = static_cast<double>(kSequence * kChannels) * (9 * kState + 2);
  EXPECT_DOUBLE_EQ(flops_of(scan_layer().forward, "mamba.scan"), forward);
  EXPECT_DOUBLE_EQ(flops_of(scan_layer().backward, "mamba.scan.backward"), 3 * forward);
}

TEST(SelectiveScan, Multiplies) {
  const double per_token = kHidden * 2 * kChannels + kChannels * (kRank + 2 * kState) +
                           kRank * kChannels + kChannels * kHidden;
  EXPECT_DOUBLE_EQ(total(scan_layer().forward).gemm_flops.value(), 2 * kSequence * per_token);
}

TEST(SelectiveScan, SavesOperandsByChannelAndStatesOfChunks) {
  // In 16 bit per token: the norm ahead (2 h); both halves of the projection; what the convolution
  // gives; copies ahead of three norms; normed steps, and what states are written and read by; by
  // channel x, steps and gate; the scan's result without its gate; that by position.
  const std::int64_t half = 2 * kHidden + 2 * kChannels + kChannels + (kRank + 2 * kState) +
                            (kRank + 2 * kState) + 3 * kChannels + kChannels + kChannels;
  // In 32 bit: factors of four norms; of the one chunk of 2,048 positions two numbers per number of
  // the state; A and its exponential.
  const std::int64_t full = 4 * kSequence + 2 * kChannels * kState + 2 * kChannels * kState;
  EXPECT_EQ(scan_layer().saved, Bytes(2 * kSequence * half + 4 * full));
}

TEST(SelectiveScan, SizesThatLieAreRefused) {
  const auto refusal = [](const ModelSpec& model) { return test::refusal(model, step()); };
  ModelSpec model = jamba("S-");
  EXPECT_EQ(refusal(model), "");
  model.mamba_head_dim = 64;
  EXPECT_THAT(refusal(model), HasSubstr("has Mamba-1 layers without sizes"));
  EXPECT_THAT(refusal(jamba("SM")), HasSubstr("has Mamba-1 beside Mamba-2 layers"));
  StepOptions split = step();
  split.layout.tensor = 2;
  EXPECT_THAT(test::refusal(jamba("S-"), split),
              HasSubstr("parallelism.tensor: of Mamba-1 layers is not simulated"));
  StepOptions adapters = step();
  adapters.lora_rank = 8;
  EXPECT_THAT(test::refusal(jamba("S-"), adapters), HasSubstr("training.lora_rank"));
}

}  // namespace
}  // namespace tessera
