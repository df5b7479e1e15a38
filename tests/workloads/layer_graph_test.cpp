// Kernels, traffic and saved activations of one transformer layer, against counts that were made
// with PyTorch 1.13 autograd (dispatch and saved-tensor hooks) and the CUDA kernels' sources.
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/families/families.h"

namespace tessera {
namespace {

using test::single_gpu;

/// Terms of the closed forms: N = b s h and A = a b s^2 elements, H = h^2.
struct Terms {
  double n, a, h;
  Terms(const ModelSpec& model, const StepOptions& step) {
    const auto b = static_cast<double>(step.micro_batch);
    const auto s = static_cast<double>(step.sequence_length);
    const auto hidden = static_cast<double>(model.hidden);
    n = b * s * hidden;
    a = static_cast<double>(model.heads) * b * s * s;
    h = hidden * hidden;
  }
};

constexpr int kLayer = 1;

Block gpt2_layer(std::int64_t batch, std::int64_t sequence) {
  return gpt2_blocks(test::gpt2_large(),
                     single_gpu(test::hf_eager(), StepMode::forward_backward, batch, sequence))
      .blocks[kLayer];
}

/// Bias vectors, LayerNorm statistics and masks, which the closed forms leave out, stay below this.
constexpr double kSmallTerms = 3e-3;

void expect_bytes(Bytes actual, double expected) {
  EXPECT_NEAR(static_cast<double>(actual.value()), expected, kSmallTerms * expected);
}

TEST(HfEagerGpt2Layer, LaunchesThirtyForwardAndFiftySevenBackwardKernels) {
  const Block layer = gpt2_layer(4, 1024);
  EXPECT_EQ(total(layer.forward).kernels, 30);
  EXPECT_EQ(total(layer.backward).kernels, 57);
}

TEST(HfEagerGpt2Layer, BatchOfOneNeedsNoHeadCopies) {
  const Block layer = gpt2_layer(1, 1024);
  EXPECT_EQ(total(layer.forward).kernels, 27);
  EXPECT_EQ(total(layer.backward).kernels, 56);
}

TEST(HfEagerGpt2Layer, MovesTheTrafficOfTheClosedForm) {
  const StepOptions step = single_gpu(test::hf_eager(), StepMode::forward_backward, 4, 1024);
  const Terms t(test::gpt2_large(), step);
  const Block layer = gpt2_layer(4, 1024);
  expect_bytes(total(layer.forward).bytes, 458 * t.n + 41 * t.a + 48 * t.h);    // 5.92 GB
  expect_bytes(total(layer.backward).bytes, 775 * t.n + 65 * t.a + 240 * t.h);  // 9.91 GB
  expect_bytes(total(layer.forward).bytes, 5.92e9);
  expect_bytes(total(layer.backward).bytes, 9.91e9);
}

TEST(HfEagerGpt2Layer, GradientsThatAreSetToNoneSaveTheAccumulation) {
  const StepOptions step = single_gpu(test::hf_eager(), StepMode::forward_backward, 4, 1024);
  const Terms t(test::gpt2_large(), step);
  OpTotals accumulation;
  for (const GraphOp& op : gpt2_layer(4, 1024).backward) {
    if (!op.accumulates_gradient) continue;
    ++accumulation.kernels;
    accumulation.bytes += op.kernel.bytes();
  }
  EXPECT_EQ(accumulation.kernels, 12);          // 4 linears and 2 norms, each weight and bias
  expect_bytes(accumulation.bytes, 144 * t.h);  // 12 H parameters, 12 bytes each
}

TEST(HfEagerGpt2Layer, SavesTheMeasuredActivations) {
  // 114 N + 9 A bytes, the statistics of two norms (2 * 8 bytes * 4096 rows) and the 0-d divisor
  const Block layer = gpt2_layer(4, 1024);
  EXPECT_EQ(layer.saved.value(), 114LL * 5242880 + 9LL * 83886080 + 2 * 8 * 4096 + 4);
  EXPECT_NEAR(static_cast<double>(layer.saved.value()), 1.3527e9, 1e5);
  EXPECT_NEAR(static_cast<double>(gpt2_layer(1, 1024).saved.value()), 338.18e6, 5e3);
}

TEST(HfEagerGpt2Layer, InferenceDropsNothingAndSavesNothing) {
  const Block layer =
      gpt2_blocks(test::gpt2_large(), single_gpu(test::hf_eager(), StepMode::inference, 4, 1024))
          .blocks[kLayer];
  EXPECT_EQ(total(layer.forward).kernels, 30 - 3);  // three dropouts
  EXPECT_TRUE(layer.backward.empty());
  EXPECT_EQ(layer.saved.value(), 0);
}

TEST(HfEagerBertLayer, LaunchesTheExecutedKernels) {
  const Block layer = bert_blocks(test::bert_large(),
                                  single_gpu(test::hf_eager(), StepMode::forward_backward, 8, 512))
                          .blocks[kLayer];
  EXPECT_EQ(total(layer.forward).kernels, 23);
  EXPECT_EQ(total(layer.backward).kernels, 57);
}

/// NVIDIA's BERT; the bias has the gradient that it has in the product, too.
TEST(HfEagerBertLayer, AddsTheBiasAheadOfTheActivationByAKernelOfItsOwn) {
  StepOptions step = single_gpu(test::hf_eager(), StepMode::forward_backward, 8, 512);
  const ModelGraph inside = bert_blocks(test::bert_large(), step);
  step.framework.feed_forward_bias_apart = true;
  const ModelGraph apart = bert_blocks(test::bert_large(), step);
  const auto forward = [](const ModelGraph& graph) { return total(graph.blocks[kLayer].forward); };
  EXPECT_EQ(forward(apart).kernels, forward(inside).kernels + 1);
  EXPECT_EQ(apart.blocks[kLayer].parameters, inside.blocks[kLayer].parameters);
  EXPECT_EQ(total(apart.blocks[kLayer].backward).kernels,
            total(inside.blocks[kLayer].backward).kernels);
}

TEST(HfEagerBertLayer, KeepsThatSwitchToItself) {
  StepOptions step = single_gpu(test::hf_eager(), StepMode::training, 8, 512);
  step.framework.feed_forward_bias_apart = true;
  EXPECT_EQ(test::refusal(test::bert_large(), step), "");
  EXPECT_NE(test::refusal(test::gpt2_large(), step).find("feed_forward_bias_apart"),
            std::string::npos);
}

TEST(HfEagerOptLayer, LaunchesTheExecutedKernels) {
  const Block layer = opt_blocks(test::opt_1_3b(),
                                 single_gpu(test::hf_eager(), StepMode::forward_backward, 2, 2048))
                          .blocks[kLayer];
  EXPECT_EQ(total(layer.forward).kernels, 23);
  EXPECT_EQ(total(layer.backward).kernels, 61);
}

TEST(MegatronGptLayer, MovesTheTrafficOfTheClosedForm) {
  const StepOptions step = single_gpu(test::megatron_local(), StepMode::training, 4, 1024);
  const Terms t(test::gpt2_large(), step);
  const Block layer = megatron_blocks(test::gpt2_large(), step).blocks[kLayer];
  EXPECT_EQ(total(layer.forward).kernels, 16);
  EXPECT_EQ(total(layer.backward).kernels, 45);
  expect_bytes(total(layer.forward).bytes, 186 * t.n + 33 * t.a + 48 * t.h);  // 3.82 GB
  // masked_fill's mask is [1, 1, s, s] and is read once: A(2 * 8) instead of A(2 * 8 + 1)
  expect_bytes(total(layer.backward).bytes, 366 * t.n + 65 * t.a + 240 * t.h);
  EXPECT_NEAR(static_cast<double>(layer.saved.value()), 1.1010e9, 1e5);
}

/// Saved bytes per element of N at b=4, s=256, h=320, a=5, ffn=1280: as/h = 4.
class ExecutedSavedBytes : public ::testing::Test {
 protected:
  static double per_element(ModelGraph (*blocks)(const ModelSpec&, const StepOptions&),
                            ModelSpec model, const FrameworkProfile& framework,
                            std::int64_t sequence) {
    model.hidden = 320;
    model.heads = model.kv_heads = 5;
    model.head_dim = 64;
    model.ffn = 1280;
    const StepOptions step = single_gpu(framework, StepMode::training, 4, sequence);
    const Block layer = blocks(model, step).blocks[kLayer];
    return static_cast<double>(layer.saved.value()) / Terms(model, step).n;
  }
};

TEST_F(ExecutedSavedBytes, MatchAutogradsSavedTensorHooks) {
  constexpr double kRounding = 0.005;
  const FrameworkProfile hf = test::hf_eager();
  EXPECT_NEAR(per_element(gpt2_blocks, test::gpt2_large(), hf, 256), 150.05, kRounding);
  EXPECT_NEAR(per_element(gpt2_blocks, test::gpt2_large(), hf, 128), 132.05, kRounding);
  EXPECT_NEAR(per_element(bert_blocks, test::bert_large(), hf, 256), 102.05, kRounding);
  EXPECT_NEAR(per_element(opt_blocks, test::opt_1_3b(), hf, 256), 82.05, kRounding);
  EXPECT_NEAR(per_element(megatron_blocks, test::gpt2_large(), test::megatron_local(), 256), 102.05,
              kRounding);
}

}  // namespace
}  // namespace tessera
