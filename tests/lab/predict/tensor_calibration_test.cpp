#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/predict/calibration.h"
#include "predictor/measured/timed_call.h"
#include "predictor/tessera_predictor.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

const PredictorWeights& weights() {
  static const PredictorWeights shipped = load_weights(committed_weights());
  return shipped;
}

/// Products of a layer in bf16 as tools/collect writes them, with the times that `truth` gives.
MeasurementFile measured_products(const GpuSpec& gpu, const GpuOverlay& truth) {
  std::string text = "gpu,dtype,m,n,k,latency_us,stack,source,timing\n";
  for (const int m : {16, 2048, 8192, 32768})
    for (const int n : {1024, 8192})
      for (const int k : {1024, 8192})
        text += gpu.id + ",bf16," + std::to_string(m) + "," + std::to_string(n) + "," +
                std::to_string(k) + ",,torch,x,graph\n";
  const ScratchFolder folder;
  MeasurementFile file = read_measurements(folder.write("rows.csv", text));
  const TesseraPredictor predictor(gpu, with_overlay(weights(), truth, gpu));
  for (KernelMeasurement& row : file.rows)
    row.latency_us = timed_call(predictor, row).value() * 1e6;
  return file;
}

TEST(TensorCalibration, RecoversAPlantedShiftOnTensorCoresAndLeavesFp32Alone) {
  const GpuSpec gpu = half_test_gpu("H200-SXM5-141GB");
  const GpuOverlay before = neutral_overlay(gpu, weights());
  GpuOverlay truth = before;
  truth.tensor = {.compute = 0.12, .memory = 0.2, .power = 0.12, .rows = 1};
  const auto result = calibrate_from_kernels(measured_products(gpu, truth), gpu, weights());
  const TensorShift found = result.overlay.tensor;
  EXPECT_NEAR(found.compute, 0.12, 0.01);
  EXPECT_NEAR(found.power, 0.12, 0.01);
  EXPECT_NEAR(found.memory, 0.2, 0.02);
  EXPECT_EQ(found.attention, 0);
  EXPECT_EQ(found.rows, 16);
  EXPECT_EQ(result.overlay.rows, 16);
  EXPECT_EQ(result.overlay.precision, Precision::bf16);
  EXPECT_EQ(result.overlay.gemm_slowdown, before.gemm_slowdown);
  EXPECT_GT(result.fitted.before[0].mean_abs_error_pct, 8);
  EXPECT_LT(result.fitted.after[0].mean_abs_error_pct, 1.5);
}

TEST(TensorCalibration, WhatWasMeasuredOnTensorCoresSaysNothingOfFp32) {
  const GpuSpec gpu = half_test_gpu("H200-SXM5-141GB");
  GpuOverlay truth = neutral_overlay(gpu, weights());
  truth.tensor = {.compute = 0.12, .power = 0.12, .rows = 1};
  GpuOverlay overlay =
      calibrate_from_kernels(measured_products(gpu, truth), gpu, weights()).overlay;
  const auto basis = [&](Precision precision) {
    Kernel kernel = linear_kernel(4096, 4096, 4096);
    kernel.precision = precision;
    return prediction_basis(PredictorForm::tessera, gpu,
                            with_overlays(weights(), std::vector{overlay}, gpu),
                            std::vector{kernel});
  };
  EXPECT_EQ(basis(Precision::fp32).mode, PredictionMode::zero_shot);
  EXPECT_EQ(basis(Precision::bf16).mode, PredictionMode::calibrated);
  EXPECT_THAT(basis(Precision::bf16).effect, HasSubstr("16 kernels of rows.csv"));
  overlay.mode = OverlayMode::calibrated_steps;
  EXPECT_EQ(basis(Precision::fp32).mode, PredictionMode::zero_shot);
  EXPECT_EQ(basis(Precision::bf16).mode, PredictionMode::calibrated_steps);
}

TEST(TensorCalibration, AttentionTakesItsShift) {
  const GpuSpec gpu = half_test_gpu("H100-SXM5-80GB");
  GpuOverlay overlay = neutral_overlay(gpu, weights());
  overlay.tensor = {.attention = std::log(1.5), .rows = 1};
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = Precision::bf16;
  kernel.attention = {.causal = true,
                      .batch = 2,
                      .heads = 32,
                      .kv_heads = 32,
                      .seq_q = 4096,
                      .seq_kv = 4096,
                      .head_dim = 128};
  const TesseraPredictor before(gpu, weights()), after(gpu, with_overlay(weights(), overlay, gpu));
  EXPECT_NEAR(after.duration(kernel) / before.duration(kernel), 1.5, 1e-9);
}

}  // namespace
}  // namespace tessera
