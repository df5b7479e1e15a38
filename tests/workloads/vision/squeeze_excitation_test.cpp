// Squeeze and excitation: kernels, parameters and what autograd saves, derived by hand.
#include "workloads/vision/squeeze_excitation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kImages = 4, kChannels = 64, kSize = 14, kReduction = 16;
constexpr std::int64_t kMeans = kImages * kChannels;
constexpr std::int64_t kElements = kMeans * kSize * kSize;

Tensor gate(Tape& t, const Tensor& x) {
  return squeeze_excitation(t, "se", x, kReduction);
}

template <class Forward>
Block block_of(const Forward& forward) {
  Tape tape(TapeOptions{});
  const Tensor x = tape.block_input("x", {kImages, kChannels, kSize, kSize});
  tape.output(forward(tape, x));
  return std::move(tape).finish("block");
}

std::vector<std::string> names(const std::vector<GraphOp>& ops) {
  std::vector<std::string> result;
  for (const GraphOp& op : ops) {
    if (op.kind == GraphOpKind::kernel && !op.accumulates_gradient) result.push_back(op.name);
  }
  return result;
}

const Kernel& kernel_called(const std::vector<GraphOp>& ops, const std::string& name) {
  return std::ranges::find(ops, name, &GraphOp::name)->kernel;
}

TEST(SqueezeExcitation, IsTwoLinearLayersOverTheMeansOfChannels) {
  const Block block = block_of(gate);
  EXPECT_THAT(names(block.forward),
              ElementsAre("se.mean", "se.squeeze", "se.relu", "se.expand", "se.sigmoid"));
  const std::int64_t narrow = kChannels / kReduction;
  EXPECT_EQ(block.parameters, 2 * kChannels * narrow + narrow + kChannels);
  EXPECT_DOUBLE_EQ(total(block.forward).gemm_flops.value(), 2.0 * 2 * kImages * kChannels * narrow);
  const Kernel& mean = kernel_called(block.forward, "se.mean");
  EXPECT_EQ(mean.bytes_read.value(), 4 * kElements);
  EXPECT_EQ(mean.bytes_written.value(), 4 * kMeans);
}

TEST(SqueezeExcitation, SavesNoImages) {
  // means, the narrow layer's output (over which ReLU's stands apart), and the sigmoid's output,
  // which is the next block's
  const std::int64_t narrow = kImages * kChannels / kReduction;
  EXPECT_EQ(block_of(gate).saved.value(), 4 * (kMeans + narrow));
}

TEST(SqueezeExcitation, ScalesIntoTheResidualInOneKernel) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    const Tensor wide = negate(t, "wide", x);
    return add_scaled(t, "add", x, wide, gate(t, wide));
  });
  EXPECT_EQ(names(block.forward).back(), "add");
  const Kernel& forward = kernel_called(block.forward, "add");
  EXPECT_EQ(forward.kind, KernelKind::copy);  // the factors are broadcast
  EXPECT_EQ(forward.bytes_read.value(), 4 * (2 * kElements + kMeans));
  EXPECT_EQ(forward.bytes_written.value(), 4 * kElements);
}

TEST(SqueezeExcitation, BackwardOfTheScalingReadsTheImagesThreeTimes) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    const Tensor wide = negate(t, "wide", x);
    return add_scaled(t, "add", x, wide, gate(t, wide));
  });
  const auto bytes = [&](const char* name) {
    return kernel_called(block.backward, name).bytes().value();
  };
  EXPECT_EQ(bytes("add.factors.mul"), 4 * 2 * kMeans);
  EXPECT_EQ(bytes("add.grad"), 4 * (2 * kElements + kMeans));  // gradient in, gradient out
  EXPECT_EQ(bytes("add.mul"), 4 * 2 * kElements);              // x times 1
  EXPECT_EQ(bytes("add.factors.grad"), 4 * 3 * kElements);
  EXPECT_EQ(bytes("add.factors.sum"), 4 * (kElements + kMeans));
  EXPECT_EQ(bytes("se.mean.div"), 4 * (kMeans + kElements));  // spread over each image
  // wide, factors, means and the narrow output
  const std::int64_t narrow = kImages * kChannels / kReduction;
  EXPECT_EQ(block.saved.value(), 4 * (kElements + 2 * kMeans + narrow));
}

}  // namespace
}  // namespace tessera
