// ALiBi: what a bias on attention scores costs under the kernels that each framework launches.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

constexpr int kEmbedding = 0;
constexpr int kLayer = 1;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kSequence = 512;

ModelSpec of_gpt2_dimensions(ModelFamily family) {
  ModelSpec model = test::gpt2_large();
  model.layers = 2;
  model.family = family;
  model.activation = Activation::gelu;
  model.hidden_dropout = model.attention_dropout = 0;
  model.max_positions = 0;
  return model;
}

ModelGraph graph_of(ModelFamily family, const FrameworkProfile& framework, int tensor = 1) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(framework, StepMode::training, kBatch, kSequence));
  step.layout.tensor = tensor;
  return build_model_graph(of_gpt2_dimensions(family), step);
}

/// Matrices of attention scores, and elements of all of them.
std::int64_t score_matrices(int tensor = 1) {
  return kBatch * test::gpt2_large().heads / tensor;
}
std::int64_t score_elements(int tensor = 1) {
  return score_matrices(tensor) * kSequence * kSequence;
}

Bytes moved(const std::vector<GraphOp>& ops) {
  return total(ops).bytes;
}

const GraphOp& op_called(const std::vector<GraphOp>& ops, const std::string& name) {
  return *std::ranges::find(ops, name, &GraphOp::name);
}

FrameworkProfile fused_softmax() {
  FrameworkProfile profile = test::megatron_local();
  profile.attention = AttentionKernels::fused_softmax;
  return profile;
}

/// A copy writes every score (2 bytes of bf16) and reads a row per head; the product reads the
/// scores: 4 bytes per score and a row more than GPT, in forward alone.
TEST(Alibi, InMegatronIsACopyThatTheScoreProductReads) {
  for (const int tensor : {1, 2}) {
    const Block gpt = graph_of(ModelFamily::gpt2, fused_softmax(), tensor).blocks[kLayer];
    const Block bloom = graph_of(ModelFamily::bloom, fused_softmax(), tensor).blocks[kLayer];
    const std::int64_t rows = 2 * score_matrices(tensor) * kSequence;
    EXPECT_EQ((moved(bloom.forward) - moved(gpt.forward)).value(),
              4 * score_elements(tensor) + rows);
    EXPECT_EQ(total(bloom.forward).kernels, total(gpt.forward).kernels + 1);
    EXPECT_EQ(moved(bloom.backward), moved(gpt.backward));
    EXPECT_EQ((bloom.buffers - gpt.buffers).value(), rows);
    EXPECT_EQ(bloom.parameters, gpt.parameters);
  }
}

TEST(Alibi, TakesThePlaceOfTheUnreadInputOfMegatronsProduct) {
  const std::int64_t scores = 2 * score_elements();
  const Bytes gpt = graph_of(ModelFamily::gpt2, fused_softmax()).shared_buffers;
  EXPECT_EQ((gpt - graph_of(ModelFamily::bloom, fused_softmax()).shared_buffers).value(), scores);
}

TEST(Alibi, IsFreeInFusedAttention) {
  for (const FrameworkProfile& framework : {test::megatron(), test::fsdp()}) {
    const Block gpt = graph_of(ModelFamily::gpt2, framework).blocks[kLayer];
    const Block bloom = graph_of(ModelFamily::bloom, framework).blocks[kLayer];
    const GraphOp& kernel = op_called(bloom.forward, "attention.flash");
    EXPECT_EQ(kernel.kernel.bytes(), op_called(gpt.forward, "attention.flash").kernel.bytes());
    EXPECT_EQ(kernel.kernel.flops, op_called(gpt.forward, "attention.flash").kernel.flops);
  }
}

TEST(Bloom, HasANormBehindTheEmbeddingInPlaceOfPositions) {
  const std::int64_t hidden = test::gpt2_large().hidden;
  for (const FrameworkProfile& framework : {test::hf_eager(), fused_softmax()}) {
    const Block bloom = graph_of(ModelFamily::bloom, framework).blocks[kEmbedding];
    const Block gpt = graph_of(ModelFamily::gpt2, framework).blocks[kEmbedding];
    EXPECT_EQ(bloom.parameters - gpt.parameters, 2 * hidden);
    // in bf16 the input once, the output once, two vectors, and 8 bytes of statistics per token
    EXPECT_EQ(op_called(bloom.forward, "embedding.norm").kernel.bytes().value(),
              4 * kBatch * kSequence * hidden + 4 * hidden + 8 * kBatch * kSequence);
  }
}

/// Per score in bf16: the copy 2, a copy to mask 4, the mask 4, to fp32 6, softmax 8, to bf16 6.
/// Rows of ALiBi and one mask per sequence come to that. The product reads what it adds to.
TEST(Bloom, OfHuggingFaceKeepsSoftmaxInFp32AndMasksACopy) {
  const Block layer = graph_of(ModelFamily::bloom, test::hf_eager()).blocks[kLayer];
  std::int64_t bytes = 0;
  for (const GraphOp& op : layer.forward) {
    const bool of_scores = op.name == "attention.scores.bias_copy" ||
                           op.name.starts_with("attention.mask") ||
                           op.name.starts_with("attention.softmax");
    if (of_scores) bytes += op.kernel.bytes().value();
  }
  EXPECT_EQ(bytes, (2 + 4 + 4 + 6 + 8 + 6) * score_elements() + 2 * score_matrices() * kSequence +
                       kBatch * kSequence * kSequence);
  const std::int64_t operands = 2 * 2 * kBatch * kSequence * test::gpt2_large().hidden;
  EXPECT_EQ(op_called(layer.forward, "attention.scores").kernel.bytes().value(),
            operands + 2 * 2 * score_elements());
}

/// fp32 slopes make the sum fp32: 2 bytes read and 4 written per score; backward casts them back.
TEST(Mpt, AddsTheBiasInAKernelOfItsOwn) {
  const Block layer = graph_of(ModelFamily::mpt, test::hf_eager()).blocks[kLayer];
  const std::int64_t rows = 4 * test::gpt2_large().heads * kSequence;
  EXPECT_EQ(op_called(layer.forward, "attention.alibi_add").kernel.bytes().value(),
            6 * score_elements() + rows);
  EXPECT_EQ(op_called(layer.backward, "attention.alibi_add.cast").kernel.bytes().value(),
            6 * score_elements());
}

TEST(Mpt, HasNoBiases) {
  const ModelGraph graph = graph_of(ModelFamily::mpt, test::hf_eager());
  for (const Block& block : graph.blocks) {
    for (const Storage& storage : block.storages) {
      EXPECT_FALSE(storage.role == TensorRole::parameter && storage.name.ends_with(".bias"))
          << storage.name;
    }
    for (const GraphOp& op : block.backward)
      EXPECT_FALSE(op.name.ends_with("bias_grad")) << op.name;
  }
}

TEST(Alibi, OfHuggingFaceHasNoGatedFeedForward) {
  const StepOptions step =
      test::single_gpu(test::hf_eager(), StepMode::training, kBatch, kSequence);
  for (const ModelFamily family : {ModelFamily::bloom, ModelFamily::mpt}) {
    ModelSpec model = of_gpt2_dimensions(family);
    EXPECT_EQ(test::refusal(model, step), "");
    model.activation = Activation::swiglu;
    EXPECT_NE(test::refusal(model, step), "");
  }
}

TEST(Mpt, IsNotMegatrons) {
  const StepOptions step =
      test::single_gpu(test::megatron(), StepMode::training, kBatch, kSequence);
  EXPECT_THAT(test::refusal(of_gpt2_dimensions(ModelFamily::mpt), step),
              ::testing::HasSubstr("trains GPT, BLOOM and Llama models only"));
}

}  // namespace
}  // namespace tessera
