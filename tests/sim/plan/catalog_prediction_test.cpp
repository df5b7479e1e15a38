#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/gpu/gpu_overlay.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/gpu/sm_rate.h"
#include "predictor/tessera_predictor.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "tests/predictor/gemm_table_comparison.h"
#include "tests/predictor/test_kernels.h"
#include "workloads/program/convolution.h"

namespace tessera {
namespace {

TEST(CatalogPredictions, OfEveryGpuEqualTheTrainedFormulas) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  const PredictorWeights weights = load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb");
  const std::vector<GemmShape> shapes = random_gemm_shapes(2000, 3);
  const auto gpus = catalog.ids(CatalogKind::gpus);
  ASSERT_GT(gpus.size(), 20u);
  for (const std::string& id : gpus)
    EXPECT_LT(worst_gemm_table_difference(load_gpu(id, catalog), weights, shapes), 1e-7) << id;
}

/// Products of one tile up to hundreds of waves, and convolutions as small models have them.
std::vector<Kernel> products_in(Precision precision) {
  std::vector<Kernel> kernels;
  for (const std::int64_t m : {32, 200, 784, 3136, 50000})
    for (const std::int64_t n : {64, 320, 1024}) {
      kernels.push_back(linear_kernel(m, n, 576));
      kernels.push_back(batched_kernel(4, m, n, 64));
    }
  for (const std::int64_t images : {1, 8, 64})
    for (const std::int32_t window : {1, 3, 5})
      kernels.push_back(convolution_kernel({.batch = images,
                                            .in_channels = 192,
                                            .out_channels = 96,
                                            .height = 28,
                                            .width = 28,
                                            .window = window,
                                            .stride = 1,
                                            .padding = window / 2}));
  for (Kernel& kernel : kernels) kernel.precision = precision;
  return kernels;
}

/// By how much an SM may get faster where there are half as many of them at the same peak: rounded
/// figures, and boards that are sold below what their SMs do (H20, L20, A10G, RTX) have a reserve.
double reserve_of_sms(const GpuSpec& whole, const GpuSpec& half, Precision precision) {
  return 2 * usable_peak(half, precision).value() / usable_peak(whole, precision).value();
}

/// A tile runs on one SM.
TEST(CatalogPredictions, HalfTheSmsAtTheSamePeaksMakeNoProductFasterThanTheirReserve) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  const PredictorWeights weights = load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb");
  for (const std::string& id : catalog.ids(CatalogKind::gpus)) {
    const GpuSpec whole = load_gpu(id, catalog);
    if (whole.vendor != "NVIDIA") continue;  // lanes and clocks of others are not tied to peaks
    GpuSpec half = whole;
    half.sm_count /= 2;
    const TesseraPredictor of_whole(whole, weights), of_half(half, weights);
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
      if (!supports_products(whole, precision)) continue;
      const double reserve = reserve_of_sms(whole, half, precision);
      const bool sold_below = id == "H20" || id == "L20" || id == "A10G" || id.starts_with("RTX");
      if (!sold_below || precision == Precision::fp32) EXPECT_LT(reserve, 1.05) << id;
      for (const Kernel& kernel : products_in(precision))
        EXPECT_GT(of_half.duration(kernel), of_whole.duration(kernel) * (0.999 / reserve))
            << id << " " << name_of(precision) << " m " << kernel.m << " n " << kernel.n << " k "
            << kernel.k << " of kind " << static_cast<int>(kernel.kind);
    }
  }
}

TEST(CatalogPredictions, PeaksOfTheCatalogAreThoseOfTheSms) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  for (const std::string& id : catalog.ids(CatalogKind::gpus)) {
    const GpuSpec gpu = load_gpu(id, catalog);
    for (const Precision precision :
         {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp8, Precision::fp4}) {
      // H20: 78 SMs at its clock do 39.5 TFLOP/s, its makers state 44. L40S: its sheet has 16 bits
      // at another clock than 8.
      const bool known = (id == "H20" && precision == Precision::fp32) ||
                         (id == "L40S" && precision == Precision::fp8);
      EXPECT_EQ(note_on_peak(gpu, precision).has_value(), known)
          << id << ": " << note_on_peak(gpu, precision).value_or("no note");
    }
  }
  GpuSpec half = load_gpu("V100-SXM2-16GB", catalog);
  half.sm_count /= 2;
  EXPECT_THAT(note_on_peak(half, Precision::fp32).value_or("none"),
              ::testing::HasSubstr("the 40 SMs do"));
}

TEST(CatalogPredictions, CardsWithoutWattsSayThatPowerHoldsNothingBack) {
  GpuSpec gpu = load_gpu("L4", Catalog(TESSERA_SOURCE_DIR "/configs"));
  const Kernel product = products_in(Precision::bf16).front();
  EXPECT_THAT(notes_on_sheet(gpu, product), ::testing::IsEmpty());
  gpu.tdp = Watts(0);
  EXPECT_THAT(notes_on_sheet(gpu, product),
              ::testing::ElementsAre(::testing::HasSubstr("states no board power (tdp)")));
}

}  // namespace
}  // namespace tessera
