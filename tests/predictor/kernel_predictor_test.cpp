#include "predictor/kernel_predictor.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/roofline.h"
#include "predictor/weights/weights.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {
namespace {

const PredictorWeights& weights() {
  static const PredictorWeights loaded = load_weights(committed_weights());
  return loaded;
}

std::vector<Kernel> assorted_kernels() {
  std::vector<Kernel> kernels;
  for (const std::int64_t m : {1, 100, 512, 16384})
    for (const std::int64_t n : {1, 1280, 50257})
      for (const std::int64_t k : {1, 64, 5120, 65519}) {
        kernels.push_back(linear_kernel(m, n, k));
        kernels.push_back(batched_kernel(80, m, 64, k));
      }
  for (const std::int64_t rows : {1, 100, 100000})
    for (const std::int64_t cols : {1, 1024, 50257})
      for (const KernelKind kind :
           {KernelKind::elementwise, KernelKind::copy, KernelKind::fill, KernelKind::softmax,
            KernelKind::layer_norm, KernelKind::reduction, KernelKind::gather, KernelKind::scatter,
            KernelKind::multi_tensor})
        kernels.push_back(row_kernel(kind, rows, cols));
  return kernels;
}

class EveryForm : public testing::TestWithParam<PredictorForm> {};

TEST_P(EveryForm, NeverBeatsTheRoofline) {
  for (const char* id : {"P4", "T4", "A100-SXM4-80GB", "L4", "H100-SXM5-80GB"}) {
    const auto predictor = make_predictor(GetParam(), test_gpu(id), weights());
    const GpuTraits traits = gpu_traits(test_gpu(id));
    for (const Kernel& kernel : assorted_kernels()) {
      const KernelPrediction prediction = predictor->predict(kernel);
      EXPECT_GE(prediction.duration.value(), roofline_seconds(kernel, traits) * (1 - 1e-12));
      EXPECT_TRUE(std::isfinite(prediction.duration.value()));
      EXPECT_LE(prediction.utilization, 1.0 + 1e-12);
      EXPECT_GE(predictor->isolated_launch_overhead(kernel).value(), 0.0);
    }
  }
}

TEST_P(EveryForm, AddsFullWavesAsRowsGrow) {
  const auto predictor = make_predictor(GetParam(), test_gpu("V100-PCIe-32GB"), weights());
  double previous = 0;
  for (std::int64_t m = 2048; m <= 32768; m *= 2) {
    const double seconds = predictor->duration(linear_kernel(m, 4096, 1024)).value();
    EXPECT_GT(seconds, previous);
    previous = seconds;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, EveryForm,
                         testing::Values(PredictorForm::roofline, PredictorForm::neusight,
                                         PredictorForm::tessera));

TEST(Roofline, IsTheLargerOfArithmeticAndTraffic) {
  const auto v100 = make_predictor(PredictorForm::roofline, test_gpu("V100-PCIe-32GB"), {});
  // 2 * 4096^3 FLOP / 14 TFLOP/s = 9.817 ms
  EXPECT_NEAR(v100->duration(linear_kernel(4096, 4096, 4096)).value(), 9.817e-3, 1e-6);
  // 8 B * 1000 * 9000 / 900 GB/s = 80 us
  const Kernel row = row_kernel(KernelKind::elementwise, 1000, 9000);
  EXPECT_NEAR(v100->duration(row).value(), 80e-6, 1e-12);
  EXPECT_EQ(v100->isolated_launch_overhead(row).value(), 0.0);
}

TEST(TesseraForm, MonotoneInRowsForMultiplesOfTheTile) {
  for (const char* id : {"P100-PCIe-16GB", "V100-PCIe-32GB", "A100-PCIe-40GB"}) {
    const auto predictor = make_predictor(PredictorForm::tessera, test_gpu(id), weights());
    double previous = 0;
    for (std::int64_t m = 128; m <= 16384; m += 128) {
      const double seconds = predictor->duration(linear_kernel(m, 1280, 1280)).value();
      EXPECT_GE(seconds, previous * (1 - 1e-9)) << id << " m = " << m;
      previous = seconds;
    }
  }
}

TEST(TesseraForm, CountsWavesOfTheLikelyTile) {
  const auto v100 = make_predictor(PredictorForm::tessera, test_gpu("V100-PCIe-32GB"), weights());
  const KernelPrediction prediction = v100->predict(linear_kernel(4096, 5120, 1280));
  ASSERT_GT(prediction.tile_m, 0);
  // 80 SMs; 128x128 tiles would be 32 * 40 = 1280 tiles = 16 waves.
  const double tiles = (4096.0 / prediction.tile_m) * (5120.0 / prediction.tile_n);
  EXPECT_DOUBLE_EQ(prediction.waves, tiles / 80);
}

TEST(TesseraForm, AlignedRowsAreFasterThanRowsOffASector) {
  const auto p100 = make_predictor(PredictorForm::tessera, test_gpu("P100-PCIe-16GB"), weights());
  EXPECT_LT(p100->duration(linear_kernel(4096, 4096, 2048)).value(),
            p100->duration(linear_kernel(4096, 4096, 2047)).value());
}

TEST(TesseraForm, IsolatedSmallCallsTakeTheLaunchFloor) {
  const auto a100 = make_predictor(PredictorForm::tessera, test_gpu("A100-PCIe-40GB"), weights());
  const Kernel tiny = row_kernel(KernelKind::elementwise, 10, 10);
  const Seconds isolated = a100->duration(tiny) + a100->isolated_launch_overhead(tiny);
  EXPECT_LT(a100->duration(tiny).value(), 3e-6);  // a queued stream hides the host
  EXPECT_GT(isolated.value(), 20e-6);             // an event-timed call does not
  EXPECT_LT(isolated.value(), 40e-6);
}

TEST(TesseraForm, BackwardRowsCostTheirExtraBytesLikeElementwiseOnes) {
  const auto v100 = make_predictor(PredictorForm::tessera, test_gpu("V100-PCIe-32GB"), weights());
  const Kernel forward = row_kernel(KernelKind::softmax, 40000, 1024);
  Kernel backward = forward;
  backward.bytes_read *= 2;
  const Kernel extra = row_kernel(KernelKind::elementwise, 20000, 1024);  // as many bytes
  const double difference = (v100->duration(backward) - v100->duration(forward)).value();
  EXPECT_NEAR(difference, v100->duration(extra).value(), 0.1 * difference);
}

TEST(TesseraForm, TrafficIsReadAgainWhereTheL2CannotHoldIt) {
  const auto v100 = make_predictor(PredictorForm::tessera, test_gpu("V100-PCIe-32GB"), weights());
  const Kernel once = row_kernel(KernelKind::copy, 65536, 2048);  // 8 bytes per element
  Kernel again = once;
  again.bytes_refetched = Bytes(4 * 65536 * 2048LL);  // half as much on top
  again.reuse_footprint = Bytes(64 << 20);            // the L2 holds 6 MB
  EXPECT_NEAR(v100->duration(again) / v100->duration(once), 1.5, 0.01);
  again.reuse_footprint = Bytes(64 << 10);
  EXPECT_NEAR(v100->duration(again) / v100->duration(once), 1.0, 0.01);
}

TEST(TesseraForm, SaysWhenAKernelIsLargerThanAllItWasTrainedOn) {
  const auto predictor = make_predictor(PredictorForm::tessera, test_gpu("T4"), weights());
  // Batched products were measured up to 1025 in every size.
  EXPECT_FALSE(predictor->predict(batched_kernel(80, 1024, 1024, 64)).extrapolated);
  EXPECT_TRUE(predictor->predict(batched_kernel(80, 2048, 2048, 64)).extrapolated);
}

TEST(MakePredictor, FormsWithoutTheirWeightsAreRefused) {
  EXPECT_THROW(make_predictor(PredictorForm::tessera, test_gpu("T4"), {}), InputError);
  EXPECT_THROW(make_predictor(PredictorForm::neusight, test_gpu("T4"), {}), InputError);
}

}  // namespace
}  // namespace tessera
