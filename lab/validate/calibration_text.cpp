#include "lab/validate/calibration_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

using CalibrationJson = nlohmann::ordered_json;

long long whole(std::int64_t value) {
  return static_cast<long long>(value);
}

std::string_view mode_word(OverlayMode mode) {
  return name_of(mode == OverlayMode::calibrated_steps ? PredictionMode::calibrated_steps
                                                       : PredictionMode::calibrated);
}

std::string title_line(const GpuOverlay& overlay) {
  return text_line("%s: %s from %lld rows of %s (fnv1a %s)", overlay.gpu.c_str(),
                   std::string(mode_word(overlay.mode)).c_str(), whole(overlay.rows),
                   overlay.source.c_str(), overlay.source_fnv1a.c_str());
}

CalibrationJson overlay_json(const GpuOverlay& overlay) {
  return {{"gpu", overlay.gpu},
          {"mode", mode_word(overlay.mode)},
          {"precision", name_of(overlay.precision)},
          {"source", overlay.source},
          {"source_fnv1a", overlay.source_fnv1a},
          {"rows", overlay.rows},
          {"weights", overlay.weights},
          {"tool_version", overlay.tool_version}};
}

bool is_floor(const CalibratedFigure& figure) {
  return figure.name.starts_with("floors.");
}

/// As people read it: slowdowns as they are, rates in TFLOP/s, floors in microseconds.
std::string shown_figure(const CalibratedFigure& figure, double value) {
  const bool rate = figure.name == "sustained_flops";
  if (rate && value <= 0) return "none";
  const double scale = rate ? 1e-12 : is_floor(figure) ? 1e6 : 1;
  const char* unit = rate ? " TFLOP/s" : is_floor(figure) ? " us" : "";
  return formatted("%.3f%s", value * scale, unit);
}

std::string error_lines(const char* title, const CalibrationErrors& errors) {
  if (errors.before.empty()) return "";
  std::string text =
      "\n" + text_line("%-26s %8s %24s %24s", title, "rows", "mean |error| %", "median |error| %");
  for (std::size_t i = 0; i < errors.before.size(); ++i) {
    const KernelErrorGroup &before = errors.before[i], &after = errors.after[i];
    text += text_line("  %-24s %8lld %13.1f -> %7.1f %13.1f -> %7.1f", before.op.c_str(),
                      whole(before.n), before.mean_abs_error_pct, after.mean_abs_error_pct,
                      before.median_abs_error_pct, after.median_abs_error_pct);
  }
  return text;
}

CalibrationJson errors_json(const CalibrationErrors& errors) {
  CalibrationJson groups = CalibrationJson::array();
  for (std::size_t i = 0; i < errors.before.size(); ++i) {
    const KernelErrorGroup &before = errors.before[i], &after = errors.after[i];
    groups.push_back({{"op", before.op},
                      {"n", before.n},
                      {"mean_abs_error_pct_before", before.mean_abs_error_pct},
                      {"mean_abs_error_pct_after", after.mean_abs_error_pct},
                      {"median_abs_error_pct_before", before.median_abs_error_pct},
                      {"median_abs_error_pct_after", after.median_abs_error_pct}});
  }
  return groups;
}

double step_error_pct(Seconds simulated, const TrainingRun& run) {
  return 100 * (simulated / *run.step_time - 1);
}

/// One line per reason, with the rows that it concerns.
std::vector<std::string> notes_of(const StepCalibration& calibration) {
  std::vector<std::string> notes;
  for (const SkippedRun& run : calibration.skipped)
    notes.push_back(run.where + " left out: " + run.reason);
  if (calibration.other_gpus > 0)
    notes.push_back(std::to_string(calibration.other_gpus) + " rows of other GPUs left out");
  return notes;
}

std::string note_lines(const std::vector<std::string>& notes) {
  std::string text = notes.empty() ? "" : "\n";
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

}  // namespace

std::string calibration_table(const KernelCalibration& calibration) {
  std::string text = title_line(calibration.overlay) + "\n";
  text += text_line("%-20s %14s %14s %8s  %s", "effect", "before", "after", "rows", "how");
  for (const CalibratedFigure& figure : calibration.figures) {
    text += text_line("%-20s %14s %14s %8lld  %s", figure.name.c_str(),
                      shown_figure(figure, figure.before).c_str(),
                      shown_figure(figure, figure.after).c_str(), whole(figure.rows),
                      figure.how.c_str());
  }
  return text + error_lines("rows of the fit", calibration.fitted) +
         error_lines("rows with split = test", calibration.held_out) +
         note_lines(calibration.notes);
}

std::string calibration_json(const KernelCalibration& calibration) {
  CalibrationJson figures = CalibrationJson::array();
  for (const CalibratedFigure& figure : calibration.figures) {
    figures.push_back({{"name", figure.name},
                       {"before", figure.before},
                       {"after", figure.after},
                       {"rows", figure.rows},
                       {"how", figure.how}});
  }
  const CalibrationJson document{{"schema", "tessera.calibration/1"},
                                 {"overlay", overlay_json(calibration.overlay)},
                                 {"figures", std::move(figures)},
                                 {"fitted", errors_json(calibration.fitted)},
                                 {"held_out", errors_json(calibration.held_out)},
                                 {"notes", calibration.notes}};
  return document.dump(2) + "\n";
}

std::string calibration_table(const StepCalibration& calibration) {
  std::string text = title_line(calibration.overlay) + "\n";
  text += text_line("products take %.4f times as long; simulated / measured %.4f -> %.4f",
                    std::exp(calibration.log_scalar), calibration.ratio_before,
                    calibration.ratio_after);
  text += "\n" + text_line("%-20s %-20s %12s %12s %12s %18s", "id", "model", "measured ms",
                           "before ms", "after ms", "error %");
  for (const CalibratedStep& step : calibration.steps) {
    text += text_line("%-20s %-20s %12.1f %12.1f %12.1f %+7.1f -> %+7.1f", step.run.id.c_str(),
                      step.run.model.c_str(), step.run.step_time->value() * 1e3,
                      step.before.value() * 1e3, step.after.value() * 1e3,
                      step_error_pct(step.before, step.run), step_error_pct(step.after, step.run));
  }
  return text + note_lines(notes_of(calibration));
}

std::string calibration_json(const StepCalibration& calibration) {
  CalibrationJson steps = CalibrationJson::array();
  for (const CalibratedStep& step : calibration.steps) {
    steps.push_back({{"where", step.run.where},
                     {"id", step.run.id},
                     {"model", step.run.model},
                     {"measured_s", step.run.step_time->value()},
                     {"before_s", step.before.value()},
                     {"after_s", step.after.value()},
                     {"error_pct_before", step_error_pct(step.before, step.run)},
                     {"error_pct_after", step_error_pct(step.after, step.run)}});
  }
  const CalibrationJson document{
      {"schema", "tessera.calibration/1"},      {"overlay", overlay_json(calibration.overlay)},
      {"log_scalar", calibration.log_scalar},   {"ratio_before", calibration.ratio_before},
      {"ratio_after", calibration.ratio_after}, {"steps", std::move(steps)},
      {"notes", notes_of(calibration)}};
  return document.dump(2) + "\n";
}

}  // namespace tessera
