// Operators of image models: traffic, FLOPs and what autograd saves, derived from PyTorch's
// formulas (tools/autograd/derivatives.yaml).
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/batch_norm.h"
#include "workloads/ops/vision/convolution.h"
#include "workloads/ops/vision/pooling.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kImages = 4;
constexpr std::int64_t kChannels = 8;
constexpr std::int64_t kSize = 16;
constexpr std::int64_t kElements = kImages * kChannels * kSize * kSize;

Block block_of(const std::function<Tensor(Tape&, const Tensor&)>& forward) {
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

TEST(VisionOps, ConvolutionBackwardIsTwoMoreConvolutionsAndABiasSum) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    return conv2d(t, "conv", x, {.out_channels = 32, .window = 3, .padding = 1, .bias = true});
  });
  EXPECT_THAT(names(block.forward), ElementsAre("conv", "conv.add_bias"));
  EXPECT_THAT(names(block.backward), ElementsAre("conv.dgrad", "conv.wgrad", "conv.bias_grad"));
  const double flops = 2.0 * kImages * kSize * kSize * 32 * kChannels * 9;
  EXPECT_DOUBLE_EQ(total(block.forward).gemm_flops.value(), flops);
  EXPECT_DOUBLE_EQ(total(block.backward).gemm_flops.value(), 2 * flops);
  const std::int64_t weight = 4LL * 32 * kChannels * 9;
  EXPECT_EQ(block.forward[0].kernel.bytes_read.value(), 4 * kElements + weight);
  EXPECT_EQ(block.forward[0].kernel.bytes_written.value(), 4LL * kImages * 32 * kSize * kSize);
  EXPECT_EQ(block.backward[1].kernel.bytes_written.value(), weight);
  EXPECT_EQ(block.saved.value(), 4 * kElements);  // x
  EXPECT_EQ(block.parameters, 32 * kChannels * 9 + 32);
}

TEST(VisionOps, GroupsOfAConvolutionHoldFiltersForTheirOwnChannels) {
  const auto grouped = [](std::int64_t groups) {
    return block_of([=](Tape& t, const Tensor& x) {
      return conv2d(t, "conv", x,
                    {.out_channels = 32, .window = 3, .padding = 1, .groups = groups});
    });
  };
  const Block one = grouped(1), four = grouped(4);
  EXPECT_EQ(four.parameters, 32 * (kChannels / 4) * 9);
  EXPECT_EQ(four.saved, one.saved);
  for (const auto direction : {&Block::forward, &Block::backward})
    EXPECT_DOUBLE_EQ(total(one.*direction).gemm_flops.value(),
                     4 * total(four.*direction).gemm_flops.value());
}

TEST(VisionOps, TransposedConvolutionRunsTheDataGradientForward) {
  const Block block = block_of(
      [](Tape& t, const Tensor& x) { return conv_transpose2d(t, "up", x, kChannels / 2, 2); });
  // every input element meets every output channel and position of its window once
  const double flops = 2.0 * kElements * (kChannels / 2) * 4;
  EXPECT_DOUBLE_EQ(total(block.forward).gemm_flops.value(), flops);
  EXPECT_EQ(block.forward[0].kernel.layout, GemmLayout::nn);
  EXPECT_EQ(block.forward[0].kernel.bytes_written.value(), 4 * kElements * 4 / 2);
  EXPECT_EQ(block.backward[0].kernel.layout, GemmLayout::tn);
  EXPECT_EQ(block.parameters, kChannels * (kChannels / 2) * 4 + kChannels / 2);
}

TEST(VisionOps, BatchNormKeepsItsInputAndEightBytesPerChannel) {
  const Block block = block_of([](Tape& t, const Tensor& x) { return batch_norm(t, "norm", x); });
  EXPECT_THAT(names(block.forward), ElementsAre("norm.num_batches_tracked", "norm"));
  EXPECT_THAT(names(block.backward), ElementsAre("norm.backward"));
  EXPECT_EQ(block.saved.value(), 4 * kElements + 8 * kChannels);
  EXPECT_EQ(block.buffers.value(), 2 * 4 * kChannels + 8);
  EXPECT_EQ(block.parameters, 2 * kChannels);
  const Kernel& forward = block.forward[1].kernel;
  EXPECT_EQ(forward.bytes_refetched.value(), 4 * kElements);
  EXPECT_EQ(forward.reuse_footprint.value(), 4 * kElements);  // fewer channels than SMs
}

TEST(VisionOps, BatchNormWithoutGradientsIsOnePointwiseKernel) {
  Tape tape(TapeOptions{Differentiation::none});
  const Tensor x = tape.block_input("x", {kImages, kChannels, kSize, kSize});
  tape.output(batch_norm(tape, "norm", x));
  const Block block = std::move(tape).finish("block");
  EXPECT_EQ(total(block.forward).kernels, 1);
  EXPECT_EQ(block.forward[0].kernel.kind, KernelKind::elementwise);
}

TEST(VisionOps, ReluInPlaceKeepsItsOutputAlone) {
  const auto saved = [](auto relu_of) {
    return block_of([=](Tape& t, const Tensor& x) {
             return tanh(t, "after", relu_of(t, batch_norm(t, "norm", x)));
           })
        .saved.value();
  };
  const auto in_place = saved([](Tape& t, const Tensor& x) { return relu_(t, "relu", x); });
  const auto apart = saved([](Tape& t, const Tensor& x) { return relu(t, "relu", x); });
  // the norm's input and the ReLU's output; tanh's output belongs to the next block
  EXPECT_EQ(in_place, 2 * 4 * kElements + 8 * kChannels);
  EXPECT_EQ(apart, in_place);  // the norm's output is not kept: it is peak memory that differs
}

TEST(VisionOps, ReluInPlaceAllocatesNothing) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    return tanh(t, "after", relu_(t, "relu", batch_norm(t, "norm", x)));
  });
  for (const GraphOp& op : block.forward) {
    if (op.name != "relu") continue;
    EXPECT_EQ(op.allocated.value(), 0);
  }
  EXPECT_THAT(names(block.forward),
              ElementsAre("norm.num_batches_tracked", "norm", "relu", "after"));
}

TEST(VisionOps, MaxPoolingKeepsItsInputAndEightBytesPerMaximum) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    return max_pool2d(t, "pool", negate(t, "before", x), {.window = 2, .stride = 2});
  });
  const std::int64_t maxima = kElements / 4;
  EXPECT_EQ(block.saved.value(), 4 * kElements + 8 * maxima);
  const Kernel& forward = block.forward[1].kernel;
  EXPECT_EQ(forward.bytes_read.value(), 4 * kElements);
  EXPECT_EQ(forward.bytes_written.value(), 12 * maxima);
  EXPECT_THAT(names(block.backward), ElementsAre("pool.zero", "pool.backward", "before.mul"));
  EXPECT_EQ(block.backward[1].kernel.bytes_read.value(), 12 * maxima);
  EXPECT_EQ(block.backward[1].kernel.bytes_written.value(), 4 * kElements);
}

TEST(VisionOps, PooledExtentsFollowPyTorch) {
  EXPECT_EQ(pooled_extent(112, {.window = 3, .stride = 2, .padding = 1}), 56);
  EXPECT_EQ(pooled_extent(112, {.window = 3, .stride = 2}), 55);
  EXPECT_EQ(pooled_extent(112, {.window = 3, .stride = 2, .rounds_up = true}), 56);
  EXPECT_EQ(pooled_extent(28, {.window = 3, .stride = 1, .padding = 1, .rounds_up = true}), 28);
  // a window that would start in the padding behind the image is left out
  EXPECT_EQ(pooled_extent(3, {.window = 2, .stride = 2, .padding = 1, .rounds_up = true}), 2);
  EXPECT_EQ(pooled_extent(1, {.window = 3, .stride = 2}), 0);
}

TEST(VisionOps, GlobalAverageKeepsNothing) {
  const Block block =
      block_of([](Tape& t, const Tensor& x) { return adaptive_average_pool2d(t, "mean", x, 1); });
  EXPECT_EQ(block.saved.value(), 0);
  EXPECT_THAT(names(block.backward), ElementsAre("mean.div"));
}

TEST(VisionOps, ConcatenationHandsOutWindowsOfItsGradient) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    const Tensor conv = conv2d(t, "conv", x, {.out_channels = 24});
    return concatenate(t, "cat", {x, conv}, 1);
  });
  EXPECT_EQ(block.forward.back().kernel.bytes_read.value(), 4 * 4 * kElements);
  // the window is copied for the convolution, and added to the data gradient for x
  EXPECT_THAT(names(block.backward),
              ElementsAre("conv.grad_copy", "conv.dgrad", "x.join", "conv.wgrad"));
}

}  // namespace
}  // namespace tessera
