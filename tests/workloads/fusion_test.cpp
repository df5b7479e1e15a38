#include "workloads/fusion.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/families/families.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

constexpr int kLayer = 1;
constexpr std::int64_t kB = 4, kS = 1024;
constexpr std::int64_t kN = kB * kS * 1280;     // elements of the hidden state
constexpr std::int64_t kA = kB * 20 * kS * kS;  // elements of the scores

Block gpt2_layer(StepMode mode) {
  return gpt2_blocks(test::gpt2_large(), test::single_gpu(test::hf_eager(), mode, kB, kS))
      .blocks[kLayer];
}

Block fused(Block block) {
  fuse_pointwise(block);
  return block;
}

const Kernel& kernel_named(const std::vector<GraphOp>& ops, const std::string& name) {
  return std::find_if(ops.begin(), ops.end(), [&](const GraphOp& op) { return op.name == name; })
      ->kernel;
}

TEST(Fusion, InferenceLayerKeepsTheKernelsBetweenProducts) {
  std::vector<std::string> names;
  for (const GraphOp& op : fused(gpt2_layer(StepMode::inference)).forward) {
    names.push_back(op.name);
  }
  EXPECT_THAT(
      names,
      ElementsAre("ln_1", "attention.qkv", "attention.qkv.copy", "attention.qkv.copy",
                  "attention.scores", "attention.softmax.fused", "attention.qkv.copy",
                  "attention.context", "attention.merge_heads", "attention.output", "ln_2.fused",
                  "mlp.up", "mlp.activation.gate.fused", "mlp.down", "mlp.residual"));
}

TEST(Fusion, ChainReadsItsInputsAndWritesItsOutputsOnce) {
  const Block layer = fused(gpt2_layer(StepMode::inference));
  const Kernel& gelu = kernel_named(layer.forward, "mlp.activation.gate.fused");
  EXPECT_EQ(gelu.bytes_read.value(), 4 * 4 * kN);  // 8 kernels moved 18 instead of 2 words
  EXPECT_EQ(gelu.bytes_written.value(), 4 * 4 * kN);
  const Kernel& scores = kernel_named(layer.forward, "attention.softmax.fused");
  EXPECT_EQ(scores.kind, KernelKind::softmax);
  EXPECT_EQ(scores.bytes_read.value(), 4 * kA + kS * kS);  // scores and the causal mask
  EXPECT_EQ(scores.bytes_written.value(), 4 * kA);
  // residual and LayerNorm: two inputs, the sum is used again
  EXPECT_EQ(kernel_named(layer.forward, "ln_2.fused").kind, KernelKind::layer_norm);
}

TEST(Fusion, WritesWhatBackwardReads) {
  const Block eager = gpt2_layer(StepMode::training);
  const Block layer = fused(eager);
  EXPECT_LE(layer.saved, eager.saved);
  const Kernel& scores = kernel_named(layer.forward, "attention.dropout.fused");
  // softmax, what dropout left, its mask, and the 0-d divisor
  EXPECT_EQ(scores.bytes_written.value(), 4 * kA + 4 * kA + kA + 4);
}

TEST(Fusion, LeavesProductsAsTheyAre) {
  for (const StepMode mode : {StepMode::inference, StepMode::training}) {
    const Block eager = gpt2_layer(mode);
    const Block layer = fused(eager);
    EXPECT_EQ(total(layer.forward).gemm_flops, total(eager.forward).gemm_flops);
    EXPECT_EQ(total(layer.backward).gemm_flops, total(eager.backward).gemm_flops);
    EXPECT_LT(total(layer.forward).bytes, total(eager.forward).bytes);
    EXPECT_LT(total(layer.forward).kernels, total(eager.forward).kernels);
  }
}

}  // namespace
}  // namespace tessera
