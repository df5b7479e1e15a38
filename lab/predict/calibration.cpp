#include "lab/predict/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/units/fnv1a.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "lab/predict/overlay_fit.h"
#include "predictor/measured/timed_call.h"
#include "predictor/tessera_predictor.h"

namespace tessera {
namespace {

/// Rows of one GPU, sorted by what they are for.
struct SortedRows {
  TimedRows fitted, held_out;
  std::vector<std::string> notes;
};

std::string counted(std::int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

SortedRows sort_rows(const MeasurementFile& file, const GpuSpec& gpu) {
  SortedRows sorted;
  std::int64_t other_gpus = 0, untimed = 0, isolated = 0;
  for (const KernelMeasurement& row : file.rows) {
    if (file.gpus[row.gpu] != gpu.id) {
      ++other_gpus;
    } else if (row.latency_us <= 0) {
      ++untimed;
    } else if (row.precision != Precision::fp32 && row.load == Load::isolated) {
      ++isolated;
    } else {
      (row.test ? sorted.held_out : sorted.fitted).push_back(&row);
    }
  }
  if (isolated > 0)
    sorted.notes.push_back(counted(isolated) +
                           " on tensor cores left out: they don't state a timing in a graph or "
                           "queue, and a GPU that rests between calls holds clocks that a step "
                           "does not; measure with tools/collect");
  if (other_gpus > 0) sorted.notes.push_back(counted(other_gpus) + " of other GPUs left out");
  if (untimed > 0) sorted.notes.push_back(counted(untimed) + " without latency_us left out");
  return sorted;
}

[[noreturn]] void refuse(const MeasurementFile& file, const GpuSpec& gpu, const SortedRows& rows) {
  const bool has_gpu = std::ranges::find(file.gpus, gpu.id) != file.gpus.end();
  std::string others;
  for (const std::string& id : file.gpus) others += (others.empty() ? "" : ", ") + id;
  if (file.rows.empty())
    throw InputError({file.path.string(), "holds no row", "measure one with tools/collect"});
  if (!has_gpu)
    throw InputError({file.path.string(), "holds no row of " + gpu.id, "it holds " + others});
  std::vector<Problem> problems;
  for (const std::string& note : rows.notes)
    problems.push_back(
        {file.path.string(), note,
         "rows with a latency are needed, on tensor cores with timing = graph or queue"});
  if (!rows.held_out.empty())
    problems.push_back({file.path.string(), "every usable row of " + gpu.id + " has split = test",
                        "nothing is fitted to such rows; leave split empty"});
  throw InputError(std::move(problems));
}

std::vector<KernelErrorGroup> errors_of(const TimedRows& rows, const GpuOverlay& overlay,
                                        const GpuSpec& gpu, const PredictorWeights& weights) {
  const TesseraPredictor predictor(gpu, with_overlay(weights, overlay, gpu));
  std::array<std::vector<double>, kMeasuredOps> errors;
  for (const KernelMeasurement* row : rows) {
    const double predicted = timed_call(predictor, *row).value() * 1e6;
    errors[static_cast<std::size_t>(row->op)].push_back(100 *
                                                        std::abs(predicted / row->latency_us - 1));
  }
  std::vector<KernelErrorGroup> groups;
  for (std::size_t op = 0; op < kMeasuredOps; ++op) {
    if (errors[op].empty()) continue;
    groups.push_back(
        error_group(gpu.id, std::string(name_of(static_cast<MeasuredOp>(op))), errors[op]));
  }
  return groups;
}

/// Log of measured over predicted time beyond which rows are of another unit or another GPU: units
/// lie 1,000 apart, and a fit goes no further.
constexpr double kStrange = 4;

/// From here on, twice as long, rows are named, though some GPUs are that slow.
constexpr double kSurprising = 0.7;

/// The row in the middle by measured over predicted time, and the log of that.
struct Middle {
  const KernelMeasurement* row = nullptr;
  double log_ratio = 0, predicted_us = 0;
};

Middle middle_of(const TimedRows& rows, const GpuOverlay& overlay, const GpuSpec& gpu,
                 const PredictorWeights& weights) {
  const TesseraPredictor predictor(gpu, with_overlay(weights, overlay, gpu));
  std::vector<Middle> all;
  for (const KernelMeasurement* row : rows) {
    const double predicted = timed_call(predictor, *row).value() * 1e6;
    all.push_back({row, std::log(row->latency_us / predicted), predicted});
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle, {}, &Middle::log_ratio);
  return *middle;
}

std::size_t line_of(const MeasurementFile& file, const KernelMeasurement& row) {
  const auto before = static_cast<std::ptrdiff_t>(row.line.data() - file.text->data());
  return 1 + static_cast<std::size_t>(
                 std::count(file.text->begin(), file.text->begin() + before, '\n'));
}

std::string compared(const Middle& middle) {
  return formatted(
      "latency_us = %.4g where %.4g are predicted, and half of the rows are as far off",
      middle.row->latency_us, middle.predicted_us);
}

/// Times in another unit, or of another GPU, would be fitted like any.
void check_plausible(const MeasurementFile& file, const Middle& middle, const GpuSpec& gpu,
                     std::vector<std::string>& notes) {
  if (std::abs(middle.log_ratio) > kStrange)
    throw InputError({file.path.string() + ":" + std::to_string(line_of(file, *middle.row)),
                      compared(middle),
                      "latency_us is in microseconds, of calls on " + gpu.id + " alone"});
  if (std::abs(middle.log_ratio) > kSurprising)
    notes.push_back("line " + std::to_string(line_of(file, *middle.row)) + ": " + compared(middle) +
                    "; are the calls of " + gpu.id + ", in microseconds?");
}

/// An overlay of nothing would pass for a calibration.
void check_fitted(const MeasurementFile& file, const OverlayFit& fit, const GpuSpec& gpu) {
  if (std::ranges::any_of(fit.figures, [](const CalibratedFigure& f) { return f.rows > 0; }))
    return;
  throw InputError({file.path.string(),
                    "decides no figure of " + gpu.id +
                        ": its calls are near the launch floor, or faster than its stated peaks",
                    "time larger kernels, and check the GPU and the unit (microseconds)"});
}

}  // namespace

KernelCalibration calibrate_from_kernels(const MeasurementFile& file, const GpuSpec& gpu,
                                         const PredictorWeights& weights) {
  SortedRows rows = sort_rows(file, gpu);
  if (rows.fitted.empty()) refuse(file, gpu, rows);
  const GpuOverlay before = neutral_overlay(gpu, weights);
  check_plausible(file, middle_of(rows.fitted, before, gpu, weights), gpu, rows.notes);
  OverlayFit fit = fit_overlay(rows.fitted, gpu, weights);
  check_fitted(file, fit, gpu);
  GpuOverlay& after = fit.overlay;
  after.mode = OverlayMode::calibrated;
  after.source = file.path.filename().string();
  after.source_fnv1a = hash_text(fnv1a(*file.text));
  after.rows = static_cast<std::int64_t>(rows.fitted.size());
  after.precision =
      after.tensor.rows < after.rows ? Precision::fp32 : rows.fitted.front()->precision;
  after.weights = hash_text(fingerprint(weights));
  const auto errors = [&](const TimedRows& of, const GpuOverlay& overlay) {
    return errors_of(of, overlay, gpu, weights);
  };
  return {.overlay = after,
          .figures = std::move(fit.figures),
          .fitted = {errors(rows.fitted, before), errors(rows.fitted, after)},
          .held_out = {errors(rows.held_out, before), errors(rows.held_out, after)},
          .notes = rows.notes};
}

}  // namespace tessera
