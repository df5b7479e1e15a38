#include "lab/predict/overlay_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "predictor/measured/timed_call.h"
#include "predictor/tessera_predictor.h"

namespace tessera {
namespace {

/// Log scalars of an overlay; a larger one means more time.
enum Scalar : std::size_t {
  kGemm,
  kBatched,
  kElementwise,
  kSoftmax,
  kLayerNorm,
  kPowerLimit,     ///< -log(sustained_flops)
  kTensorCompute,  ///< moves tensor.power along: tiles and limit are too close to tell apart by
                   ///< most
  kTensorMemory,
  kTensorPower,  ///< beyond that
  kFloors,       ///< log of the launch floors, one per class
  kScalars = kFloors + 5
};
constexpr std::array<const char*, kScalars> kNames{
    "gemm_slowdown",       "batched_slowdown", "elementwise_slowdown", "softmax_slowdown",
    "layer_norm_slowdown", "sustained_flops",  "tensor.compute",       "tensor.memory",
    "tensor.power",        "floors.linear",    "floors.batched",       "floors.elementwise",
    "floors.softmax",      "floors.layer_norm"};

/// In the order of the first scalars, which are one per class.
constexpr std::array kFloorOfClass{&LaunchFloors::linear, &LaunchFloors::batched,
                                   &LaunchFloors::elementwise, &LaunchFloors::softmax,
                                   &LaunchFloors::layer_norm};

// A row counts for a scalar that decides at least this share of its time: so an error of x in the
// rest, such as the launch gap, becomes x / 2 in the scalar at most.
constexpr double kDecidingShare = 2.0 / 3;
constexpr double kProbe = 0.01;      // of a log scalar, for its share
constexpr double kLargestStep = 1;   // of a log scalar: a first guess may be far off
constexpr double kLargestTotal = 4;  // e^4 = 55 times off: the rows are not what they claim
constexpr double kSettled = 1e-7;    // step below which a scalar stands still
constexpr int kSweeps = 60;
constexpr int kDampedFrom = 20;  // rows on the border of two scalars may go to and fro

std::size_t class_of(MeasuredOp op) {
  switch (op) {
    case MeasuredOp::linear:
      return kGemm;
    case MeasuredOp::bmm:
      return kBatched;
    case MeasuredOp::softmax:
      return kSoftmax;
    case MeasuredOp::layer_norm:
      return kLayerNorm;
    default:
      return kElementwise;
  }
}

/// The figure of an overlay behind a scalar, which is its log for rates and floors.
double& figure(GpuOverlay& overlay, std::size_t scalar) {
  if (scalar >= kFloors) return overlay.floors.*kFloorOfClass[scalar - kFloors];
  switch (scalar) {
    case kGemm:
      return overlay.gemm_slowdown;
    case kBatched:
      return overlay.batched_slowdown;
    case kPowerLimit:
      return overlay.sustained_flops;
    case kTensorCompute:
      return overlay.tensor.compute;
    case kTensorMemory:
      return overlay.tensor.memory;
    case kTensorPower:
      return overlay.tensor.power;
    default:
      return overlay.bandwidth_slowdown[scalar - kElementwise];
  }
}

void shift(GpuOverlay& overlay, std::size_t scalar, double by) {
  double& value = figure(overlay, scalar);
  if (scalar >= kFloors) {
    value *= std::exp(by);
  } else if (scalar == kPowerLimit) {
    value *= std::exp(-by);
  } else {
    value += by;
    if (scalar == kTensorCompute) overlay.tensor.power += by;
  }
}

/// An octave of duration weighs as much as this many rows at most, as in training
/// (lab/fit/fp32/octaves.h): neither the many short calls nor the few long ones decide alone.
constexpr double kRowsPerOctave = 120;

struct Weighted {
  double value = 0, weight = 0;
  int octave = 0;  ///< of the measured duration
};

void level_octaves(std::vector<Weighted>& values) {
  std::map<int, double> rows;
  for (const Weighted& v : values) rows[v.octave] += 1;
  for (Weighted& v : values) v.weight *= std::min(1.0, kRowsPerOctave / rows[v.octave]);
}

/// The value at which half of the weight lies below; between two, their mean.
double weighted_median(std::vector<Weighted> values) {
  std::ranges::sort(values, {}, &Weighted::value);
  double half = 0;
  for (const Weighted& v : values) half += v.weight / 2;
  double below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    below += values[i].weight;
    if (below > half * (1 + 1e-12)) return values[i].value;
    if (below >= half * (1 - 1e-12) && i + 1 < values.size())
      return (values[i].value + values[i + 1].value) / 2;
  }
  return values.back().value;
}

class Fit {
 public:
  Fit(const TimedRows& rows, const GpuSpec& gpu, const PredictorWeights& weights)
      : gpu_(gpu), weights_(weights), start_(neutral_overlay(gpu, weights)), overlay_(start_) {
    for (const KernelMeasurement* row : rows) {
      if (row->precision != Precision::fp32) {
        for (const std::size_t of : {kTensorCompute, kTensorMemory, kTensorPower})
          rows_[of].push_back(row);
        continue;
      }
      const std::size_t of = class_of(row->op);
      rows_[of].push_back(row);
      if (of == kGemm || of == kBatched) rows_[kPowerLimit].push_back(row);
      if (row->timing == CallTiming::isolated) rows_[kFloors + of].push_back(row);
    }
    overlay_.tensor.rows = static_cast<std::int64_t>(rows_[kTensorCompute].size());
  }

  OverlayFit run() {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      double largest = 0;
      for (std::size_t scalar = 0; scalar < kScalars; ++scalar)
        largest = std::max(largest, step(scalar, sweep < kDampedFrom ? 1 : 0.5));
      if (largest < kSettled) break;
    }
    complete();
    return {overlay_, figures()};
  }

 private:
  TesseraPredictor predictor(const GpuOverlay& overlay) const {
    return {gpu_, with_overlay(weights_, overlay, gpu_)};
  }

  /// Moves one scalar towards the weighted median; returns by how much it moved.
  double step(std::size_t scalar, double damping) {
    used_[scalar] = 0;
    if (rows_[scalar].empty() || undetermined_[scalar] ||
        (scalar == kPowerLimit && overlay_.sustained_flops <= 0))
      return 0;
    GpuOverlay probe = overlay_;
    shift(probe, scalar, kProbe);
    const TesseraPredictor now = predictor(overlay_), moved = predictor(probe);
    std::vector<Weighted> steps;
    for (const KernelMeasurement* row : rows_[scalar]) {
      const double time = timed_call(now, *row).value();
      const double share = std::log(timed_call(moved, *row).value() / time) / kProbe;
      if (share < kDecidingShare) continue;
      steps.push_back({std::log(row->latency_us * 1e-6 / time) / share, share,
                       static_cast<int>(std::floor(std::log2(row->latency_us)))});
    }
    used_[scalar] = static_cast<std::int64_t>(steps.size());
    if (steps.empty()) return give_up(scalar);
    level_octaves(steps);
    const double wanted = damping * weighted_median(std::move(steps));
    const double by = std::clamp(wanted, -kLargestStep, kLargestStep);
    if (std::abs(total_[scalar] + by) > kLargestTotal) return 0;
    shift(overlay_, scalar, by);
    total_[scalar] += by;
    return std::abs(by);
  }

  /// Rows that decided no longer do, because they moved the scalar away: they tell nothing.
  double give_up(std::size_t scalar) {
    const double by = -total_[scalar];
    undetermined_[scalar] = by != 0;
    shift(overlay_, scalar, by);
    total_[scalar] = 0;
    return std::abs(by);
  }

  bool fitted(std::size_t scalar) const { return used_[scalar] > 0; }

  /// Scalars that no row shows follow those that share the hardware.
  void complete() {
    if (fitted(kGemm) != fitted(kBatched)) {
      const auto [known, unknown] =
          fitted(kGemm) ? std::pair(kGemm, kBatched) : std::pair(kBatched, kGemm);
      shift(overlay_, unknown, total_[known]);
      how_[unknown] =
          std::string("takes the shift of ") + kNames[known] + ": same lanes, same clock";
    }
    if (fitted(kTensorCompute) && !fitted(kTensorPower))
      how_[kTensorPower] = "takes the shift of tensor.compute";
    double sum = 0, number = 0;
    for (const std::size_t scalar : {kElementwise, kSoftmax, kLayerNorm}) {
      if (!fitted(scalar)) continue;
      sum += total_[scalar];
      number += 1;
    }
    for (const std::size_t scalar : {kElementwise, kSoftmax, kLayerNorm}) {
      if (fitted(scalar) || number == 0) continue;
      shift(overlay_, scalar, sum / number);
      how_[scalar] = "takes the mean shift of the measured memory-bound classes: same memory";
    }
  }

  std::string how(std::size_t scalar) const {
    if (fitted(scalar)) return "fitted";
    if (!how_[scalar].empty()) return how_[scalar];
    if (scalar == kPowerLimit && overlay_.sustained_flops <= 0) return "unchanged: no power limit";
    if (!rows_[scalar].empty()) return "unchanged: it decides two thirds of the time of no row";
    return scalar < kFloors ? "unchanged: no rows" : "unchanged: no isolated calls";
  }

  std::vector<CalibratedFigure> figures() {
    std::vector<CalibratedFigure> figures;
    GpuOverlay before = start_;
    for (std::size_t s = 0; s < kScalars; ++s)
      figures.push_back({kNames[s], figure(before, s), figure(overlay_, s), used_[s], how(s)});
    return figures;
  }

  const GpuSpec& gpu_;
  const PredictorWeights& weights_;
  const GpuOverlay start_;
  GpuOverlay overlay_;
  std::array<TimedRows, kScalars> rows_;
  std::array<double, kScalars> total_{};       ///< shift so far
  std::array<std::int64_t, kScalars> used_{};  ///< rows of the last step
  std::array<bool, kScalars> undetermined_{};
  std::array<std::string, kScalars> how_;
};

}  // namespace

OverlayFit fit_overlay(const TimedRows& rows, const GpuSpec& gpu, const PredictorWeights& weights) {
  return Fit(rows, gpu, weights).run();
}

}  // namespace tessera
