#include "predictor/fp32/conv_model.h"

#include <gtest/gtest.h>

#include "predictor/kernel_predictor.h"
#include "predictor/roofline.h"
#include "predictor/tessera_predictor.h"
#include "predictor/weights/weights.h"
#include "tests/predictor/synthetic_convolutions.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

const GpuTraits& v100() {
  static const GpuTraits traits = gpu_traits(test_gpu("V100-PCIe-32GB"));
  return traits;
}

/// Arithmetic alone, whole waves of 128x128 tiles, nothing lost.
ConvolutionParameters<double> arithmetic_only() {
  return {.norm = 100, .quantisation = 1, .penalty = {0, 5, 5}};
}

ConvolutionGpu<double> unlimited(const GpuTraits& traits, double slowdown = 0) {
  return {traits, slowdown, 0};
}

double wave_seconds(double k) {
  return 2.0 * 128 * 128 * k * v100().sms / v100().flops;
}

// 80 images of 16x8 pixels, 64 channels to 128: 10240 positions, k = 576. V100 has 80 SMs.
ConvolutionShape one_wave() {
  return convolution_shape(convolution_kernel({.batch = 80,
                                               .in_channels = 64,
                                               .out_channels = 128,
                                               .height = 16,
                                               .width = 8,
                                               .window = 3,
                                               .stride = 1,
                                               .padding = 1}));
}

TEST(ConvolutionShape, IsReadBackFromTheKernel) {
  const ConvolutionShape s = one_wave();
  EXPECT_EQ(s.images, 80);
  EXPECT_EQ(s.channels, 64);
  EXPECT_EQ(s.filters, 128);
  EXPECT_EQ(s.input_bytes, 4.0 * 80 * 64 * 16 * 8);
  EXPECT_EQ(s.weight_bytes, 4.0 * 128 * 64 * 9);
  EXPECT_EQ(s.output_bytes, 4.0 * 80 * 128 * 16 * 8);
}

TEST(ConvolutionModel, TheImplicitProductFillsOneWave) {
  // 10240 / 128 * 1 = 80 tiles on 80 SMs.
  const auto terms = implicit_gemm(one_wave(), unlimited(v100()), arithmetic_only());
  EXPECT_NEAR(terms.compute, wave_seconds(576), 1e-12);
}

TEST(ConvolutionModel, FusedWinogradMultipliesSixteenTimesPerFourOutputs) {
  // An image is 8 rows of 4 tiles of 2x2 outputs. A block takes 4 rows of up to 8 of them and 32
  // filters: 80 * 2 * 4 = 640 blocks = 8 waves.
  const auto terms = fused_winograd(one_wave(), unlimited(v100()), arithmetic_only());
  EXPECT_NEAR(terms.compute, 8 * wave_seconds(64), 1e-12);
}

TEST(ConvolutionModel, StagedWinogradRuns36ProductsOverTilesOf4x4Outputs) {
  // 80 * 4 * 2 = 640 tiles: 36 * 5 * 1 thread blocks = 2.25 waves, so 3.
  const auto terms = staged_winograd(one_wave(), unlimited(v100()), arithmetic_only());
  EXPECT_NEAR(terms.compute, 3 * wave_seconds(64), 1e-12);
}

// Grids that cuDNN launched, from kernels/fp32_conv.csv: 3x3, stride 1, padding 1.
TEST(ConvolutionModel, BlocksOfFusedWinogradAreThoseLaunched) {
  const auto blocks = [](const char* gpu, std::int64_t batch, std::int64_t in, std::int64_t out,
                         std::int64_t size) {
    const ConvolutionShape s = convolution_shape(square_convolution(batch, in, out, size));
    return fused_winograd_product(s, gpu_traits(test_gpu(gpu))).m / 128;
  };
  EXPECT_EQ(blocks("P100-PCIe-16GB", 38, 893, 326, 5), 209);  // tile244n: 19 * 11
  EXPECT_EQ(blocks("P4", 24, 511, 807, 6), 156 * 2);          // tile424n
  EXPECT_EQ(blocks("T4", 5, 119, 758, 24), 120 * 3 * 2);      // tile148t, the only one since Volta
}

TEST(ConvolutionModel, TheFastestAlgorithmDecides) {
  const auto p = arithmetic_only();
  // 3 waves at k = 64 beat 1 wave at k = 576 = 9 * 64.
  EXPECT_NEAR(convolution_seconds(one_wave(), unlimited(v100()), p), 3 * wave_seconds(64), 1e-9);
  auto expensive_transforms = p;
  expensive_transforms.transform = 50;
  EXPECT_NEAR(convolution_seconds(one_wave(), unlimited(v100()), expensive_transforms),
              wave_seconds(576), 1e-3 * wave_seconds(576));
}

TEST(ConvolutionModel, OtherWindowsAndStridesAreImplicitProducts) {
  for (const std::int32_t window : {1, 5, 7}) {
    const ConvolutionShape s = convolution_shape(square_convolution(16, 64, 128, 28, window));
    const auto terms = implicit_gemm(s, unlimited(v100()), arithmetic_only());
    EXPECT_EQ(convolution_seconds(s, unlimited(v100()), arithmetic_only()), terms.compute);
  }
  EXPECT_FALSE(convolution_shape(square_convolution(16, 64, 128, 28, 3, 2)).winograd());
}

TEST(ConvolutionModel, APowerLimitSlowsTheArithmeticThatIsReallyDone) {
  // At a tenth of the peak. Staged Winograd multiplies 36 times per 16 outputs, not 144 times.
  const ConvolutionGpu<double> limited{v100(), 0, v100().flops / 10};
  const auto implicit = implicit_gemm(one_wave(), limited, arithmetic_only());
  EXPECT_NEAR(implicit.compute, 10 * wave_seconds(576), 1e-5 * wave_seconds(5760));
  const auto staged = staged_winograd(one_wave(), limited, arithmetic_only());
  EXPECT_NEAR(staged.compute / implicit.compute, 1 / 4.0, 1e-3);
}

TEST(ConvolutionModel, NeverBeatsItsBound) {
  const TesseraPredictor predictor(test_gpu("A100-PCIe-40GB"), weights_with_convolutions());
  const GpuTraits traits = gpu_traits(test_gpu("A100-PCIe-40GB"));
  for (const std::int64_t batch : {1, 32, 512})
    for (const std::int64_t channels : {3, 64, 2048})
      for (const std::int64_t size : {7, 56, 224})
        for (const std::int32_t window : {1, 3, 7}) {
          const Kernel kernel = square_convolution(batch, channels, 256, size, window);
          const KernelPrediction prediction = predictor.predict(kernel);
          EXPECT_GE(prediction.duration.value(),
                    convolution_bound_seconds(convolution_shape(kernel), traits));
          EXPECT_LE(prediction.utilization, 1);
          EXPECT_GE(predictor.isolated_launch_overhead(kernel).value(), 0);
        }
}

TEST(ConvolutionPredictor, WinogradBeatsTheRooflineOfTheDirectProduct) {
  const TesseraPredictor predictor(test_gpu("V100-PCIe-32GB"), weights_with_convolutions());
  const Kernel kernel = square_convolution(64, 512, 512, 28);
  EXPECT_LT(predictor.duration(kernel).value(), roofline_seconds(kernel, v100()));
  const Kernel strided = square_convolution(64, 512, 512, 28, 3, 2);
  EXPECT_GT(predictor.duration(strided).value(), roofline_seconds(strided, v100()));
}

TEST(ConvolutionPredictor, GradientsTakeTheTimeOfTheForwardPass) {
  const TesseraPredictor predictor(test_gpu("V100-PCIe-32GB"), weights_with_convolutions());
  Convolution c{.batch = 32,
                .in_channels = 64,
                .out_channels = 256,
                .height = 28,
                .width = 28,
                .window = 3,
                .padding = 1};
  const Seconds forward = predictor.duration(convolution_kernel(c));
  EXPECT_EQ(predictor.duration(convolution_kernel(c, ConvolutionPass::data_gradient)), forward);
  EXPECT_EQ(predictor.duration(convolution_kernel(c, ConvolutionPass::weight_gradient)), forward);
}

TEST(ConvolutionPredictor, AGpuWithoutTimedConvolutionsTakesTheShiftAgainstLinearLayers) {
  const PredictorWeights weights = weights_with_convolutions();
  const TesseraPredictor a100(test_gpu("A100-PCIe-40GB"), weights);
  EXPECT_DOUBLE_EQ(*a100.effect().convolution_slowdown,
                   a100.effect().gemm_slowdown + weights.convolution->shift);
  EXPECT_NE(a100.effect().reason.find("none was timed"), std::string::npos);
  const TesseraPredictor measured(test_gpu("V100-PCIe-32GB"), weights);
  EXPECT_DOUBLE_EQ(*measured.effect().convolution_slowdown, 0.4);
  EXPECT_EQ(measured.effect().reason.find("none was timed"), std::string::npos);
}

TEST(ConvolutionPredictor, WeightsWithoutConvolutionsPredictTheImplicitProduct) {
  PredictorWeights weights = weights_with_convolutions();
  weights.convolution.reset();
  const TesseraPredictor predictor(test_gpu("V100-PCIe-32GB"), weights);
  const Kernel convolution = square_convolution(32, 64, 256, 28);
  Kernel product = convolution;
  product.kind = KernelKind::batched_gemm;
  product.layout = GemmLayout::nn;
  EXPECT_EQ(predictor.duration(convolution), predictor.duration(product));
  EXPECT_NE(predictor.effect().reason.find("implicit product"), std::string::npos);
}

class ConvolutionForm : public testing::TestWithParam<PredictorForm> {};

TEST_P(ConvolutionForm, GrowsWithTheBatch) {
  const auto predictor =
      make_predictor(GetParam(), test_gpu("V100-PCIe-32GB"), weights_with_convolutions());
  double previous = 0;
  for (std::int64_t batch = 64; batch <= 1024; batch *= 2) {
    const double seconds = predictor->duration(square_convolution(batch, 64, 256, 56)).value();
    EXPECT_GT(seconds, 1.5 * previous);
    previous = seconds;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ConvolutionForm,
                         testing::Values(PredictorForm::roofline, PredictorForm::neusight,
                                         PredictorForm::tessera));

}  // namespace
}  // namespace tessera
