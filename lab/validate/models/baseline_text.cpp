#include "lab/validate/models/baseline_text.h"

#include <algorithm>
#include <cmath>

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"
#include "sim/report/drawings/svg_canvas.h"

namespace tessera {
namespace {

constexpr const char* kBaselineDefinition =
    "error = simulated / measured - 1 of the step time. Regression and plain MLP are trained on "
    "the "
    "same kernels as Tessera's form, and predict kernels alone: the operators of a model, the host "
    "and collectives are Tessera's. A kernel takes what they say of an isolated call; kinds that "
    "were not measured count as elementwise. NeuSight: as published.";

std::string row_line(const ComparedRun& row) {
  const ModelRun& run = row.run;
  std::string text = text_line("%-20s %-9s %-11s %-16s %5lld %5lld %10.1f", run.gpu.c_str(),
                               run.parallelism.c_str(), run.model.c_str(), run.mode.c_str(),
                               static_cast<long long>(run.seq_len),
                               static_cast<long long>(run.batch), run.measured->value() * 1e3);
  text.pop_back();
  for (const auto& error : row.error_pct)
    text += text_line(" %11s", figure_cell(error, "%+.1f").c_str()).substr(0, 12);
  return text + "\n";
}

std::string baseline_header() {
  std::string text = text_line("%-20s %-9s %-11s %-16s %5s %5s %10s", "GPU", "layout", "model",
                               "mode", "seq", "batch", "meas. ms");
  text.pop_back();
  for (const char* name : kModelPredictors) text += text_line(" %11s", name).substr(0, 12);
  return text + "   error %\n";
}

std::string group_name(const PredictorErrors& group) {
  if (group.by == "published") return "predicted by all: " + group.predictor;
  return group.by + (group.key.empty() ? "" : " " + group.key) + ": " + group.predictor;
}

// The picture, in pixels.
constexpr double kLeft = 250, kWidth = 560, kTop = 46, kRow = 20, kDot = 9;
constexpr double kLeast = 0.5, kMost = 100;  ///< |error| in %, at both ends
constexpr std::array<const char*, kModelPredictors.size()> kColours{"#1b6ca8", "#7a7a7a", "#e0912f",
                                                                    "#b8433f"};

double place_of(double error_pct) {
  const double clamped = std::clamp(error_pct, kLeast, kMost);
  return kLeft + kWidth * std::log(clamped / kLeast) / std::log(kMost / kLeast);
}

void draw_scale(SvgCanvas& canvas, double bottom) {
  for (const double tick : {0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0}) {
    canvas.line({place_of(tick), kTop}, {place_of(tick), bottom}, "#dddddd");
    canvas.text({place_of(tick), bottom + 14}, figure_cell(tick, "%g") + " %",
                {.anchor = TextAnchor::middle});
  }
}

void draw_legend(SvgCanvas& canvas) {
  canvas.text({12, 20}, "Mean |error| of step times, by GPU and model", {.size = 13, .bold = true});
  for (std::size_t p = 0; p < kModelPredictors.size(); ++p) {
    const double x = kLeft + 110 + 110 * static_cast<double>(p);
    canvas.rect({x, 12, kDot, kDot}, kColours[p]);
    canvas.text({x + 14, 20}, kModelPredictors[p], {});
  }
}

}  // namespace

std::string baseline_table(const BaselineComparison& comparison) {
  std::string text = baseline_header();
  for (const ComparedRun& row : comparison.rows) text += row_line(row);
  for (const char* by : {"gpu", "model", "gpu and model", "published", "all"}) {
    text += "\n";
    for (const PredictorErrors& group : comparison.groups) {
      if (group.by == by && group.errors.n > 0) text += error_line(group_name(group), group.errors);
    }
  }
  return text + std::string(kBaselineDefinition) + "\n";
}

std::string baseline_picture(const BaselineComparison& comparison) {
  std::vector<const PredictorErrors*> groups;
  for (const PredictorErrors& group : comparison.groups) {
    if (group.by == "gpu and model" || group.by == "all") groups.push_back(&group);
  }
  // "all" sorts ahead of "gpu and model".
  const auto rows = static_cast<double>(groups.size() / kModelPredictors.size());
  const double bottom = kTop + kRow * rows;
  SvgCanvas canvas(kLeft + kWidth + 30, bottom + 24);
  draw_legend(canvas);
  draw_scale(canvas, bottom);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const PredictorErrors& group = *groups[i];
    const std::size_t predictor = i % kModelPredictors.size();
    const double y = kTop + kRow * (static_cast<double>(i / kModelPredictors.size()) + 0.5);
    if (predictor == 0)
      canvas.text({kLeft - 12, y + 4}, group.key.empty() ? "all" : group.key,
                  {.anchor = TextAnchor::end, .bold = group.key.empty()});
    if (group.errors.n == 0) continue;
    const double x = place_of(group.errors.mean_abs_error_pct);
    canvas.rect({x - kDot / 2, y - kDot / 2, kDot, kDot}, kColours[predictor], 0.85);
  }
  return canvas.finish();
}

}  // namespace tessera
