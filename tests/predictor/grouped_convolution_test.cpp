// Convolutions in groups: one implicit product for each
// (docs/decisions/0028-grouped-convolutions.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/fp32/conv_model.h"
#include "predictor/stand_ins.h"
#include "predictor/tessera_predictor.h"
#include "tests/predictor/synthetic_convolutions.h"
#include "tests/predictor/tensor/half_gpus.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// 3x3 windows over 28x28 images of 32 groups with `in` and `out` channels each.
Convolution grouped(std::int64_t in, std::int64_t out, std::int64_t groups = 32) {
  return {.batch = 32,
          .in_channels = groups * in,
          .out_channels = groups * out,
          .height = 28,
          .width = 28,
          .window = 3,
          .padding = 1,
          .groups = groups};
}

Kernel kernel_of(const Convolution& convolution, Precision precision = Precision::fp32) {
  return convolution_kernel(convolution, ConvolutionPass::forward, precision);
}

TEST(GroupedConvolution, ItsShapeIsReadBackFromTheKernel) {
  const ConvolutionShape s = convolution_shape(kernel_of(grouped(8, 16)));
  EXPECT_EQ(s.groups, 32);
  EXPECT_EQ(s.images, 32);
  EXPECT_EQ(s.channels, 8);
  EXPECT_EQ(s.filters, 16);
  EXPECT_EQ(s.input_bytes, 4.0 * 32 * (32 * 8) * 28 * 28);
  EXPECT_EQ(s.weight_bytes, 4.0 * (32 * 16) * 8 * 9);
  EXPECT_EQ(s.output_bytes, 4.0 * 32 * (32 * 16) * 28 * 28);
  EXPECT_FALSE(s.winograd());
  EXPECT_TRUE(convolution_shape(kernel_of(grouped(8, 16, 1))).winograd());
}

TEST(GroupedConvolution, TilesDoNotReachIntoTheNextGroup) {
  // 32 * 28 * 28 / 128 = 196 rows of tiles for each of 32 groups, on 80 SMs: 78.4 waves, so 79, of
  // 128x128 tiles over k = 72 for up to 128 filters in a group.
  const GpuTraits v100 = gpu_traits(test_gpu("V100-PCIe-32GB"));
  const ConvolutionParameters<double> p{.norm = 100, .quantisation = 1, .penalty = {0, 5, 5}};
  const double wave = 2.0 * 128 * 128 * 72 * v100.sms / v100.flops;
  for (const std::int64_t filters : {8, 128}) {
    const ConvolutionShape s = convolution_shape(kernel_of(grouped(8, filters)));
    EXPECT_NEAR(implicit_gemm(s, {v100, 0, 0}, p).compute, 79 * wave, 1e-9 * wave) << filters;
  }
}

TEST(GroupedConvolution, NeverBeatsItsBoundNorOneOfItsGroups) {
  for (const char* gpu : {"V100-PCIe-32GB", "A100-PCIe-40GB"}) {
    const TesseraPredictor predictor(test_gpu(gpu), weights_with_convolutions());
    const GpuTraits traits = gpu_traits(test_gpu(gpu));
    for (const std::int64_t channels : {4, 16, 64}) {
      const Kernel kernel = kernel_of(grouped(channels, channels));
      const double seconds = predictor.duration(kernel).value();
      EXPECT_GE(seconds, convolution_bound_seconds(convolution_shape(kernel), traits));
      EXPECT_GT(seconds, predictor.duration(kernel_of(grouped(channels, channels, 1))).value());
    }
  }
}

TEST(GroupedConvolution, PaddingMakesNarrowGroupsSlowPerFlop) {
  const TesseraPredictor predictor(test_gpu("V100-PCIe-32GB"), weights_with_convolutions());
  const auto rate = [&](std::int64_t filters) {
    const Kernel kernel = kernel_of(grouped(64, filters));
    return kernel.flops.value() / predictor.duration(kernel).value();
  };
  EXPECT_LT(rate(4), 0.5 * rate(16));
  EXPECT_LT(rate(16), 0.8 * rate(64));
}

TEST(GroupedConvolution, OneGroupIsAPlainConvolution) {
  const Kernel kernel = kernel_of(grouped(64, 256, 1));
  EXPECT_EQ(kernel, square_convolution(32, 64, 256, 28));
}

TEST(GroupedConvolution, IsNotedAsNeverMeasured) {
  const TesseraPredictor predictor(test_gpu("V100-PCIe-32GB"), weights_with_convolutions());
  const Kernel kernel = kernel_of(grouped(8, 8));
  EXPECT_THAT(predictor.notes(kernel), Contains(HasSubstr("in groups: never measured")));
  const Extrapolation beyond = predictor.predict(kernel).extrapolated;
  EXPECT_EQ(beyond.input, "groups");
  EXPECT_EQ(beyond.factor, 32);
  const KernelPrediction one = predictor.predict(kernel_of(grouped(8, 8, 1)));
  EXPECT_GT(predictor.predict(kernel).spread.shape, one.spread.shape);
}

TEST(GroupedConvolution, OnTensorCoresIsABatchOfProducts) {
  const TesseraPredictor predictor(half_test_gpu("A100-SXM4-80GB"),
                                   load_weights(committed_weights()));
  const Kernel kernel = kernel_of(grouped(16, 16), Precision::fp16);
  EXPECT_EQ(predictor.duration(kernel), predictor.duration(implicit_product(kernel)));
  EXPECT_THAT(predictor.notes(kernel), Contains(HasSubstr("fp16 convolutions in groups on")));
  // groups of 4 channels stay there although their rows are off 16 bytes
  EXPECT_TRUE(TensorCorePredictor::covers(kernel_of(grouped(4, 4), Precision::fp16)));
}

}  // namespace
}  // namespace tessera
