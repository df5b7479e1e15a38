// DeepSeek sparse attention (DeepSeek V3.2, GLM-5): parameters, arithmetic and saved bytes by hand.
#include "workloads/ops/attention/chosen_tokens.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/hugging_face/llama_parameters.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 512, kTopk = 128;
constexpr std::int64_t kHidden = 256, kHeads = 4, kNope = 48, kRope = 16, kValue = 32;
constexpr std::int64_t kQueryRank = 160, kRank = 96, kFfn = 512;
constexpr std::int64_t kIndexHeads = 8, kIndexDim = 32;
constexpr std::int64_t kWidth = kRank + kRope;

/// Two dense layers of DeepSeek's, with an indexer.
ModelSpec chosen() {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = kHidden;
  m.heads = m.kv_heads = kHeads;
  m.head_dim = kNope + kRope;
  m.ffn = kFfn;
  m.vocab = 1024;
  m.kv_rank = kRank;
  m.q_rank = kQueryRank;
  m.rope_dim = kRope;
  m.v_head_dim = kValue;
  m.index_heads = kIndexHeads;
  m.index_head_dim = kIndexDim;
  m.index_topk = kTopk;
  return m;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

Block layer_of(const ModelSpec& model, const StepOptions& options = step()) {
  return build_model_graph(model, options).blocks[1];
}

/// Of the indexer's three projections.
constexpr std::int64_t kIndexMatrices =
    kQueryRank * kIndexHeads * kIndexDim + kHidden * kIndexDim + kHidden * kIndexHeads;

TEST(ChosenTokens, AnIndexerHasThreeMatricesAndALayerNorm) {
  ModelSpec without = chosen();
  without.index_heads = without.index_head_dim = without.index_topk = 0;
  EXPECT_EQ(layer_of(chosen()).parameters - layer_of(without).parameters,
            kIndexMatrices + 2 * kIndexDim);
  EXPECT_EQ(build_model_graph(chosen(), step()).parameters(), parameter_count(chosen()));
  // DeepSeek V3.2's: 1,536 x 64 x 128 + 7,168 x 128 + 2 x 128 + 7,168 x 64
  ModelSpec deepseek = chosen();
  deepseek.hidden = 7168;
  deepseek.q_rank = 1536;
  deepseek.index_heads = 64;
  deepseek.index_head_dim = 128;
  ModelSpec plain = deepseek;
  plain.index_heads = 0;
  EXPECT_EQ(parameter_count(deepseek) - parameter_count(plain), 2 * 13'959'424);
}

TEST(ChosenTokens, AQueryChoosesNoMoreThanItSees) {
  // The first 128 queries see up to 128 tokens, in the mean half of them; all others 128.
  EXPECT_EQ(mean_chosen(512, 128), 128 - 128 * 128 / (2 * 512));
  EXPECT_EQ(mean_chosen(512, 512), 256);
  EXPECT_EQ(mean_chosen(512, 2048), 256);
}

/// Per token; pairs of the indexer are half a sequence, those of attention 112.
struct Work {
  double projections, index_projections, index, attention, target;
};
Work work_of_token() {
  const double seen = kSequence / 2.0, chosen = 112;
  const double projections = kHidden * kQueryRank + kQueryRank * kHeads * (kNope + kRope) +
                             kHidden * kWidth + kHeads * kRank * (kNope + kValue) +
                             kHeads * kValue * kHidden + 3 * kHidden * kFfn;
  return {2 * projections, 2.0 * kIndexMatrices, 2.0 * kIndexHeads * kIndexDim * seen,
          2.0 * kHeads * (kWidth + kRank) * chosen, 2.0 * kHeads * kWidth * chosen};
}

TEST(ChosenTokens, ProductsOfALayerByHand) {
  const Block layer = layer_of(chosen());
  const Work w = work_of_token();
  EXPECT_DOUBLE_EQ(
      total(layer.forward).gemm_flops.value(),
      kSequence * (w.projections + w.index_projections + w.index + w.attention + w.target));
  // Scores again, then gradients of values, weights, queries and keys: three of the keys' width,
  // two of the values'. The indexer: its scores again, gradients of queries and of keys, over what
  // was chosen. Its projections give no gradients to what they read.
  const double attention = 2.0 * kHeads * (3 * kWidth + 2 * kRank) * 112;
  const double index = 2.0 * kIndexHeads * 3 * kIndexDim * 112;
  EXPECT_DOUBLE_EQ(total(layer.backward).gemm_flops.value(),
                   kSequence * (2 * w.projections + w.index_projections + attention + index));
}

TEST(ChosenTokens, WhatNothingTrainsIsNotDifferentiated) {
  ModelSpec model = chosen();
  model.index_loss = false;
  const Block layer = layer_of(model);
  const Work w = work_of_token();
  EXPECT_DOUBLE_EQ(total(layer.forward).gemm_flops.value(),
                   kSequence * (w.projections + w.index_projections + w.index + w.attention));
  const double attention = 2.0 * kHeads * (3 * kWidth + 2 * kRank) * 112;
  EXPECT_DOUBLE_EQ(total(layer.backward).gemm_flops.value(),
                   kSequence * (2 * w.projections + attention));
  EXPECT_EQ(layer.parameters, layer_of(chosen()).parameters);
}

/// In 16 bit, per token.
constexpr std::int64_t kHalves =
    2 * kHidden +               // the layer's input, and its norm's output
    2 * kQueryRank + kRank +    // ranks ahead of their norms, that of queries behind it too
    kHeads * (kNope + kRope) +  // queries, of which a part is absorbed
    kHeads * kWidth + kWidth +  // absorbed queries; a row of keys and values
    kHeads * kRank +            // what attention gives
    kHeads * kValue +           // what the output layer reads
    2 * kHidden + 3 * kFfn;     // the middle, its norm's output, gate and up, the feed-forward's
/// In 32 bit: factors of four norms, a sum per head, which tokens were chosen.
constexpr std::int64_t kWords = 4 + kHeads + kTopk;

TEST(ChosenTokens, SavedBytesByHand) {
  // The indexer: queries and keys behind their turns, keys ahead of the layer norm; weights, the
  // norm's mean and deviation, scores and the attention to learn.
  const std::int64_t halves = kHalves + kIndexHeads * kIndexDim + 2 * kIndexDim;
  const std::int64_t words = kWords + kIndexHeads + 2 + 2 * kTopk;
  EXPECT_EQ(layer_of(chosen()).saved.value(), kSequence * (2 * halves + 4 * words));
  ModelSpec model = chosen();
  model.index_loss = false;
  EXPECT_EQ(layer_of(model).saved.value(), kSequence * (2 * kHalves + 4 * kWords));
}

TEST(ChosenTokens, RunAgainWhereAttentionOrTheRanksDo) {
  StepOptions again = step();
  again.recompute = Recompute::selective;
  const auto repeated = [&](const std::string& name) {
    const Block layer = layer_of(chosen(), again);
    return std::ranges::count_if(layer.backward, [&](const GraphOp& op) {
      return op.recomputed && op.name == name && op.kind == GraphOpKind::kernel;
    });
  };
  EXPECT_EQ(repeated("attention.sparse"), 1);
  EXPECT_EQ(repeated("attention.k_up"), 0);
  again.recompute_modules = {"mla_up_proj"};
  EXPECT_EQ(repeated("attention.k_up"), 1);
  EXPECT_EQ(repeated("attention.sparse"), 0);
  again.recompute = Recompute::full;
  again.recompute_modules.clear();
  EXPECT_EQ(repeated("attention.sparse"), 1);
  EXPECT_EQ(repeated("attention.sparse.index"), 1);
}

TEST(ChosenTokens, InInferenceNothingLearns) {
  StepOptions options = step();
  options.mode = StepMode::inference;
  const Block layer = layer_of(chosen(), options);
  const Work w = work_of_token();
  EXPECT_DOUBLE_EQ(total(layer.forward).gemm_flops.value(),
                   kSequence * (w.projections + w.index_projections + w.index + w.attention));
}

StepOptions over_two_ranks() {
  StepOptions options = step();
  options.layout.tensor = 2;
  options.layout.sequence_parallel = true;
  return options;
}

/// Of two tensor-parallel ranks each has half of the heads and of the feed-forward, reads half of
/// the sequence into the ranks, and runs the whole indexer.
TEST(ChosenTokens, TensorParallelRanksShareHeadsButNotTheIndexer) {
  const StepOptions options = over_two_ranks();
  EXPECT_EQ(test::refusal(chosen(), options), "");
  const Block layer = layer_of(chosen(), options);
  const Work w = work_of_token();
  EXPECT_DOUBLE_EQ(
      total(layer.forward).gemm_flops.value(),
      kSequence * ((w.projections + w.attention + w.target) / 2 + w.index_projections + w.index));
  const std::int64_t ranks = (kHidden + 1) * (kQueryRank + kRank) + kHidden * kRope;
  const std::int64_t shared = ranks + 2 * kHidden + kIndexMatrices + 2 * kIndexDim;
  EXPECT_EQ(2 * layer.parameters, layer_of(chosen()).parameters + shared);
  const auto bytes = [&](const std::vector<GraphOp>& ops, const std::string& name) {
    std::int64_t sum = 0;
    for (const GraphOp& op : ops)
      if (op.name == name) sum += op.bytes.value();
    return sum;
  };
  EXPECT_EQ(bytes(layer.forward, "attention.sparse.target.all_reduce"), 4 * kSequence * kTopk);
  EXPECT_EQ(bytes(layer.forward, "index.hidden.all_gather"), 2 * kSequence * kHidden);
  EXPECT_EQ(bytes(layer.forward, "index.rank.all_gather"), 2 * kSequence * kQueryRank);
  EXPECT_EQ(bytes(layer.backward, "index.hidden.grad.reduce_scatter"), 0) << "it has no gradient";
  EXPECT_GT(bytes(layer.backward, "attention.kv.grad.reduce_scatter"), 0);
}

TEST(ChosenTokens, WhatIsNotKnownOfItIsRefused) {
  EXPECT_EQ(test::refusal(chosen(), step()), "");
  const auto without = [](auto change) {
    ModelSpec model = chosen();
    change(model);
    return test::refusal(model, step());
  };
  EXPECT_THAT(without([](ModelSpec& m) { m.q_rank = 0; }), HasSubstr("give kv_rank and q_rank"));
  EXPECT_THAT(without([](ModelSpec& m) { m.index_topk = 0; }), HasSubstr("chooses nothing"));
  EXPECT_THAT(without([](ModelSpec& m) { m.index_head_dim = 8; }),
              HasSubstr("model.index_head_dim = 8 is less than rope_dim = 16"));
  EXPECT_THAT(without([](ModelSpec& m) { m.index_heads = 0; }),
              HasSubstr("model.index_topk is of an indexer, and there is none"));
  const auto beside = [](auto change) {
    StepOptions options = step();
    change(options);
    return test::refusal(chosen(), options);
  };
  EXPECT_THAT(beside([](StepOptions& s) { s.layout.tensor = 2; }),
              HasSubstr("use parallelism.sequence_parallel: true"));
  EXPECT_THAT(beside([](StepOptions& s) { s.lora_rank = 8; }), HasSubstr("training.lora_rank"));
  EXPECT_THAT(beside([](StepOptions& s) { s.mean_document = 64; }),
              HasSubstr("tokens are chosen of whole sequences"));
}

}  // namespace
}  // namespace tessera
