#include "lab/predict/calibration.h"

#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/measured/timed_call.h"
#include "predictor/tessera_predictor.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader = "gpu,op,split,batch,m,n,k,rows,cols,latency_us,timing\n";

const PredictorWeights& weights() {
  static const PredictorWeights shipped = load_weights(committed_weights());
  return shipped;
}

MeasurementFile read_rows(const std::string& text) {
  const ScratchFolder folder;
  return read_measurements(folder.write("rows.csv", text));
}

/// Products and streams of many sizes without times; `timing` as in the file.
std::string shapes(const std::string& gpu, const char* timing) {
  std::string text = kHeader;
  const auto row = [&](const char* op, const std::string& sizes) {
    text += gpu + "," + op + ",," + sizes + ",," + timing + "\n";
  };
  for (const int m : {64, 512, 2048, 8192}) {
    for (const int n : {512, 1280, 5120}) {
      const std::string sizes = std::to_string(m) + "," + std::to_string(n) + ",1280,,";
      row("linear", "1," + sizes);
      row("bmm", "24," + sizes);
      const std::string matrix = ",,,," + std::to_string(m) + "," + std::to_string(n);
      for (const char* op : {"add", "gelu", "softmax", "layer_norm"}) row(op, matrix);
    }
  }
  return text;
}

/// The rows of `shapes` with the times of `truth`, each multiplied by what `noise` returns.
MeasurementFile measured(const GpuSpec& gpu, const GpuOverlay& truth, const char* timing,
                         const std::function<double()>& noise) {
  MeasurementFile file = read_rows(shapes(gpu.id, timing));
  const TesseraPredictor predictor(gpu, with_overlay(weights(), truth, gpu));
  for (KernelMeasurement& row : file.rows)
    row.latency_us = timed_call(predictor, row).value() * 1e6 * noise();
  return file;
}

double exactly() {
  return 1;
}

GpuOverlay planted(const GpuSpec& gpu) {
  GpuOverlay overlay = neutral_overlay(gpu, weights());
  overlay.gemm_slowdown += 0.25;
  overlay.batched_slowdown += 0.15;
  overlay.bandwidth_slowdown[0] += 0.10;
  overlay.bandwidth_slowdown[1] += 0.20;
  overlay.bandwidth_slowdown[2] += 0.30;
  return overlay;
}

void expect_near(const GpuOverlay& found, const GpuOverlay& truth, double tolerance) {
  EXPECT_NEAR(found.gemm_slowdown, truth.gemm_slowdown, tolerance);
  EXPECT_NEAR(found.batched_slowdown, truth.batched_slowdown, tolerance);
  for (std::size_t c = 0; c < kMemoryClasses; ++c)
    EXPECT_NEAR(found.bandwidth_slowdown[c], truth.bandwidth_slowdown[c], tolerance) << c;
}

TEST(Calibration, RecoversAPlantedEffectFromQueuedAndFromIsolatedCalls) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  for (const char* timing : {"graph", "queue", "isolated"}) {
    const auto file = measured(gpu, planted(gpu), timing, exactly);
    expect_near(calibrate_from_kernels(file, gpu, weights()).overlay, planted(gpu), 1e-5);
  }
}

TEST(Calibration, RecoversItFromNoisyCallsAndShrinksTheErrors) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  std::mt19937_64 random(7);
  // Within 5 % either way.
  const auto noise = [&] { return 0.95 + 0.1 * static_cast<double>(random() >> 11) * 0x1.0p-53; };
  const auto result =
      calibrate_from_kernels(measured(gpu, planted(gpu), "graph", noise), gpu, weights());
  expect_near(result.overlay, planted(gpu), 0.03);
  ASSERT_EQ(result.fitted.before.size(), 6u);
  for (std::size_t i = 0; i < result.fitted.before.size(); ++i)
    EXPECT_LT(result.fitted.after[i].mean_abs_error_pct, result.fitted.before[i].mean_abs_error_pct)
        << result.fitted.before[i].op;
}

TEST(Calibration, AFewOddRowsDoNotMatter) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  int row = 0;
  // Every fifth call met a throttled or shared GPU.
  const auto file =
      measured(gpu, planted(gpu), "graph", [&] { return row++ % 5 == 0 ? 3.0 : 1.0; });
  expect_near(calibrate_from_kernels(file, gpu, weights()).overlay, planted(gpu), 1e-5);
}

TEST(Calibration, RecoversAPowerLimitWhereItDecides) {
  const GpuSpec gpu = test_gpu("L4");
  GpuOverlay truth = planted(gpu);
  truth.gemm_slowdown -= 0.6;
  truth.batched_slowdown -= 0.6;
  truth.sustained_flops *= 0.6;
  const auto file = measured(gpu, truth, "graph", exactly);
  const GpuOverlay found = calibrate_from_kernels(file, gpu, weights()).overlay;
  EXPECT_NEAR(found.sustained_flops / truth.sustained_flops, 1, 0.01);
}

TEST(Calibration, OneRowIsEnoughForItsClassAndTheSameHardware) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  MeasurementFile file = measured(gpu, planted(gpu), "graph", exactly);
  std::erase_if(file.rows, [](const KernelMeasurement& row) {
    return row.op != MeasuredOp::linear || row.m != 8192 || row.n != 5120;
  });
  ASSERT_EQ(file.rows.size(), 1u);
  const auto result = calibrate_from_kernels(file, gpu, weights());
  const GpuOverlay before = neutral_overlay(gpu, weights());
  EXPECT_NEAR(result.overlay.gemm_slowdown - before.gemm_slowdown, 0.25, 1e-5);
  EXPECT_NEAR(result.overlay.batched_slowdown - before.batched_slowdown, 0.25, 1e-5);
  EXPECT_EQ(result.overlay.bandwidth_slowdown, before.bandwidth_slowdown);
  EXPECT_EQ(result.overlay.rows, 1);
  EXPECT_EQ(result.figures[1].how, "takes the shift of gemm_slowdown: same lanes, same clock");
}

TEST(Calibration, MemoryBoundClassesWithoutRowsTakeTheMeanShiftOfTheOthers) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  MeasurementFile file = measured(gpu, planted(gpu), "graph", exactly);
  std::erase_if(file.rows, [](const KernelMeasurement& row) {
    return row.op != MeasuredOp::gelu && row.op != MeasuredOp::softmax;
  });
  const GpuOverlay found = calibrate_from_kernels(file, gpu, weights()).overlay;
  const GpuOverlay before = neutral_overlay(gpu, weights());
  EXPECT_NEAR(found.bandwidth_slowdown[2] - before.bandwidth_slowdown[2], (0.10 + 0.20) / 2, 1e-5);
  EXPECT_EQ(found.gemm_slowdown, before.gemm_slowdown);
}

TEST(Calibration, FloorsComeFromIsolatedCallsAlone) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  GpuOverlay truth = planted(gpu);
  truth.floors.linear = 40e-6;
  truth.floors.softmax = 80e-6;
  const auto isolated = measured(gpu, truth, "isolated", exactly);
  const GpuOverlay found = calibrate_from_kernels(isolated, gpu, weights()).overlay;
  EXPECT_NEAR(found.floors.linear * 1e6, 40, 1e-3);
  EXPECT_NEAR(found.floors.softmax * 1e6, 80, 1e-3);
  expect_near(found, truth, 1e-4);
  const auto queued = measured(gpu, truth, "queue", exactly);
  EXPECT_EQ(calibrate_from_kernels(queued, gpu, weights()).overlay.floors.linear,
            neutral_overlay(gpu, weights()).floors.linear);
}

TEST(Calibration, RowsKeptForJudgingAreOnlyScored) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  MeasurementFile file = measured(gpu, planted(gpu), "graph", exactly);
  const auto alone = calibrate_from_kernels(file, gpu, weights());
  std::vector<KernelMeasurement> odd = file.rows;
  for (KernelMeasurement& row : odd) {
    row.test = true;
    row.latency_us *= 10;
    file.rows.push_back(row);
  }
  const auto result = calibrate_from_kernels(file, gpu, weights());
  expect_near(result.overlay, alone.overlay, 1e-12);
  ASSERT_EQ(result.held_out.after.size(), 6u);
  EXPECT_NEAR(result.held_out.after[0].mean_abs_error_pct, 90, 0.1);  // predicted a tenth
}

std::string refusal(const std::string& text, const char* gpu) {
  try {
    calibrate_from_kernels(read_rows(text), test_gpu(gpu), weights());
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(what.find("rows.csv"));
  }
  return "none";
}

TEST(Calibration, RefusalsSayWhatTheFileHolds) {
  EXPECT_EQ(refusal(kHeader, "L4"), "rows.csv: holds no row; measure one with tools/collect");
  EXPECT_EQ(refusal(std::string(kHeader) + "T4,add,,,,,,8,8,30,\nP4,add,,,,,,8,8,30,\n", "L4"),
            "rows.csv: holds no row of L4; it holds T4, P4");
  EXPECT_EQ(
      refusal(std::string(kHeader) + "L4,add,,,,,,8,8,,\n", "L4"),
      "rows.csv: 1 row without latency_us left out; rows with a latency are needed, on tensor "
      "cores with timing = graph or queue");
  EXPECT_EQ(refusal(std::string(kHeader) + "L4,add,test,,,,,8,8,30,\n", "L4"),
            "rows.csv: every usable row of L4 has split = test; nothing is fitted to such rows; "
            "leave split empty");
  EXPECT_EQ(refusal("gpu,dtype,m,n,k,latency_us,stack,source\nL4,bf16,64,64,64,3,torch,x\n", "L4"),
            "rows.csv: 1 row on tensor cores left out: they don't state a timing in a graph or "
            "queue, and a GPU that rests between calls holds clocks that a step does not; measure "
            "with tools/collect; rows with a latency are needed, on tensor cores with timing = "
            "graph or queue");
}

MeasurementFile scaled(MeasurementFile file, double factor) {
  for (KernelMeasurement& row : file.rows) row.latency_us *= factor;
  return file;
}

std::string refusal(const MeasurementFile& file, const GpuSpec& gpu) {
  try {
    calibrate_from_kernels(file, gpu, weights());
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(Calibration, TimesOfAnotherUnitAreRefused) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  const MeasurementFile file = measured(gpu, planted(gpu), "graph", exactly);
  EXPECT_THAT(refusal(scaled(file, 1e-3), gpu), HasSubstr("latency_us is in microseconds"));
  EXPECT_THAT(refusal(scaled(file, 1e3), gpu), HasSubstr("latency_us is in microseconds"));
  const auto slow = calibrate_from_kernels(scaled(file, 4), gpu, weights());
  EXPECT_THAT(slow.notes, testing::ElementsAre(HasSubstr("are the calls of H200-SXM5-141GB")));
  EXPECT_THAT(calibrate_from_kernels(file, gpu, weights()).notes, testing::IsEmpty());
}

TEST(Calibration, RowsFasterThanThePeaksDecideNothingAndAreRefused) {
  const GpuSpec gpu = test_gpu("H200-SXM5-141GB");
  MeasurementFile file = measured(gpu, planted(gpu), "graph", exactly);
  std::erase_if(file.rows, [](const KernelMeasurement& row) {
    return row.op != MeasuredOp::linear || row.m != 8192;
  });
  EXPECT_THAT(refusal(scaled(file, 0.2), gpu), HasSubstr("decides no figure of H200-SXM5-141GB"));
}

TEST(Calibration, Fp32RowsOfAFileOfProductsAreUsedAndUnsettledOthersNamed) {
  const auto file = read_rows(
      "gpu,dtype,m,n,k,latency_us,stack,source\n"
      "L4,fp32,4096,4096,4096,9000,torch,x\nL4,tf32,4096,4096,4096,3000,torch,x\n");
  const auto result = calibrate_from_kernels(file, test_gpu("L4"), weights());
  EXPECT_EQ(result.overlay.rows, 1);
  EXPECT_THAT(result.notes, testing::ElementsAre(HasSubstr("1 row on tensor cores left out")));
  EXPECT_NEAR(result.fitted.after[0].mean_abs_error_pct, 0, 1e-3);
}

TEST(Overlays, ChangeTheirGpuAloneAndNameTheirSource) {
  const GpuSpec gpu = test_gpu("A100-PCIe-40GB");
  GpuOverlay overlay = planted(gpu);
  overlay.source = "rows.csv";
  overlay.rows = 7;
  overlay.weights = hash_text(fingerprint(weights()));
  const PredictorWeights changed = with_overlays(weights(), std::vector{overlay}, gpu);
  EXPECT_EQ(effect_in_use(gpu, changed).gemm_slowdown, overlay.gemm_slowdown);
  const GpuSpec twin = test_gpu("A100-SXM4-80GB"), other = test_gpu("H200-SXM5-141GB");
  EXPECT_EQ(effect_in_use(twin, changed).gemm_slowdown,
            effect_in_use(twin, weights()).gemm_slowdown);
  EXPECT_EQ(effect_in_use(other, changed).gemm_slowdown,
            effect_in_use(other, weights()).gemm_slowdown);
  const auto basis = prediction_basis(PredictorForm::tessera, gpu, changed);
  EXPECT_EQ(basis.provenance, EffectProvenance::calibrated);
  EXPECT_EQ(basis.effect, "7 kernels of rows.csv");
}

TEST(Overlays, OfOtherWeightsAreRefused) {
  const GpuSpec gpu = test_gpu("L4");
  GpuOverlay overlay = planted(gpu);
  overlay.source = "rows.csv";
  overlay.weights = "0x0000000000000001";
  try {
    with_overlays(weights(), std::vector{overlay}, gpu);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "overlays: the overlay of L4 was made for the weights 0x0000000000000001, these are " +
            hash_text(fingerprint(weights())) + "; run tessera calibrate again with rows.csv");
  }
}

TEST(PredictionModes, SayWhetherTheGpuWasMeasured) {
  const auto mode = [](PredictorForm form, const char* gpu) {
    return name_of(prediction_basis(form, test_gpu(gpu), weights()).mode);
  };
  EXPECT_EQ(mode(PredictorForm::tessera, "T4"), "calibrated");
  EXPECT_EQ(mode(PredictorForm::tessera, "A100-SXM4-80GB"), "zero-shot");  // twin die
  EXPECT_EQ(mode(PredictorForm::tessera, "H200-SXM5-141GB"), "zero-shot");
  EXPECT_EQ(mode(PredictorForm::neusight, "T4"), "calibrated");
  EXPECT_EQ(mode(PredictorForm::roofline, "T4"), "zero-shot");
  const GpuSpec gpu = test_gpu("L4");
  GpuOverlay steps = planted(gpu);
  steps.mode = OverlayMode::calibrated_steps;
  EXPECT_EQ(
      name_of(
          prediction_basis(PredictorForm::tessera, gpu, with_overlay(weights(), steps, gpu)).mode),
      "calibrated-steps");
}

}  // namespace
}  // namespace tessera
