#include "workloads/program/convolution.h"

#include <gtest/gtest.h>

#include "workloads/program/labels.h"

namespace tessera {
namespace {

// The first layer of ResNet-50: 224x224 images, 7x7 windows at stride 2.
constexpr Convolution kStem{.batch = 4,
                            .in_channels = 3,
                            .out_channels = 64,
                            .height = 224,
                            .width = 224,
                            .window = 7,
                            .stride = 2,
                            .padding = 3};

TEST(Convolution, TheOutputFollowsFromWindowStrideAndPadding) {
  EXPECT_EQ(kStem.out_height(), 112);  // (224 + 6 - 7) / 2 + 1, rounded down
  Convolution same{.height = 14, .width = 9, .window = 3, .stride = 1, .padding = 1};
  EXPECT_EQ(same.out_height(), 14);
  EXPECT_EQ(same.out_width(), 9);
  same.padding = 0;
  EXPECT_EQ(same.out_width(), 7);
  same.window = 10;
  EXPECT_EQ(same.out_width(), 0);
}

TEST(Convolution, TheKernelHoldsTheImplicitProductAndCompulsoryBytes) {
  const Kernel kernel = convolution_kernel(kStem);
  EXPECT_EQ(label_of(kernel.kind), "convolution");
  EXPECT_EQ(kernel.m, 4 * 112 * 112);
  EXPECT_EQ(kernel.n, 64);
  EXPECT_EQ(kernel.k, 3 * 7 * 7);
  EXPECT_DOUBLE_EQ(kernel.flops.value(), 2.0 * (4 * 112 * 112) * 64 * 147);
  EXPECT_EQ(kernel.bytes_read.value(), 4 * (4 * 3 * 224 * 224 + 64 * 147));
  EXPECT_EQ(kernel.bytes_written.value(), 4 * (4 * 64 * 112 * 112));
  EXPECT_EQ(kernel.convolution.window, 7);
  EXPECT_EQ(kernel.convolution.stride, 2);
  EXPECT_EQ(kernel.convolution.out_width, 112);
}

TEST(Convolution, GradientsDoTheSameArithmeticOnTheSameTensors) {
  const Kernel forward = convolution_kernel(kStem);
  for (const auto pass : {ConvolutionPass::data_gradient, ConvolutionPass::weight_gradient}) {
    const Kernel gradient = convolution_kernel(kStem, pass);
    EXPECT_EQ(gradient.flops, forward.flops);
    EXPECT_EQ(gradient.bytes(), forward.bytes());
    EXPECT_NE(gradient, forward);
  }
  EXPECT_EQ(convolution_kernel(kStem, ConvolutionPass::data_gradient).bytes_written.value(),
            4 * (4 * 3 * 224 * 224));
  EXPECT_EQ(convolution_kernel(kStem, ConvolutionPass::weight_gradient).bytes_written.value(),
            4 * 64 * 147);
}

// The 3x3 convolutions of ResNeXt's first stage: 128 channels in 32 groups of 4.
constexpr Convolution kGrouped{.batch = 2,
                               .in_channels = 128,
                               .out_channels = 256,
                               .height = 56,
                               .width = 56,
                               .window = 3,
                               .padding = 1,
                               .groups = 32};

TEST(Convolution, GroupsAreABatchOfProductsOverTheirOwnChannels) {
  const Kernel kernel = convolution_kernel(kGrouped);
  EXPECT_EQ(kernel.batch, 32);
  EXPECT_EQ(kernel.m, 2 * 56 * 56);
  EXPECT_EQ(kernel.n, 8);      // 256 / 32
  EXPECT_EQ(kernel.k, 4 * 9);  // 128 / 32 channels
  EXPECT_EQ(shape_label(kernel), "32 * 6272 x 8 x 36 tn");
}

TEST(Convolution, GroupsDivideArithmeticAndWeightsAndLeaveTheImages) {
  Convolution whole = kGrouped;
  whole.groups = 1;
  for (const auto pass : {ConvolutionPass::forward, ConvolutionPass::data_gradient,
                          ConvolutionPass::weight_gradient}) {
    const Kernel one = convolution_kernel(whole, pass), many = convolution_kernel(kGrouped, pass);
    EXPECT_DOUBLE_EQ(one.flops.value(), 32 * many.flops.value());
    // 256 filters of 128 channels against 256 of 4, in fp32
    EXPECT_EQ((one.bytes() - many.bytes()).value(), 4 * 256 * (128 - 4) * 9);
  }
}

}  // namespace
}  // namespace tessera
