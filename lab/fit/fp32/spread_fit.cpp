#include "lab/fit/fp32/spread_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lab/fit/fp32/octaves.h"
#include "predictor/kernel_predictor.h"

namespace tessera {
namespace {

// Calls shorter than this many launch floors say little about the kernel.
constexpr double kFloorsPerTellingCall = 3;
// Central 80 % of a normal distribution, in standard deviations to one side.
constexpr double kEightyPercent = 1.2816;

/// 90 % quantile of Student's distribution over that of the normal one, by degrees of freedom: a
/// spread seen on few GPUs is itself uncertain.
double small_sample_factor(std::size_t degrees) {
  constexpr std::array<double, 6> kFactor{3.08 / 1.2816,  3.08 / 1.2816,  1.886 / 1.2816,
                                          1.638 / 1.2816, 1.533 / 1.2816, 1.476 / 1.2816};
  return kFactor[std::min(degrees, kFactor.size() - 1)];
}

std::vector<MeasuredOp> ops_of(SpreadClass spread_class) {
  switch (spread_class) {
    case SpreadClass::linear:
      return {MeasuredOp::linear};
    case SpreadClass::batched:
      return {MeasuredOp::bmm};
    case SpreadClass::elementwise:
      return {MeasuredOp::add, MeasuredOp::gelu};
    case SpreadClass::softmax:
      return {MeasuredOp::softmax};
    case SpreadClass::layer_norm:
      return {MeasuredOp::layer_norm};
    case SpreadClass::convolution:
      break;
  }
  return {MeasuredOp::conv2d};
}

/// log(predicted / measured) of the telling calls of one class on `gpu`, each octave of duration
/// represented alike; empty where the class's session is not used (anomalous linear rows).
std::vector<double> residuals(const GpuData& gpu, SpreadClass spread_class,
                              const PredictorWeights& weights) {
  const auto predictor = make_predictor(PredictorForm::tessera, gpu.spec, weights);
  std::vector<double> residuals;
  if (spread_class == SpreadClass::linear && gpu.linear_anomalous) return residuals;
  for (const MeasuredOp op : ops_of(spread_class)) {
    const double telling = kFloorsPerTellingCall * fastest_seconds(gpu, op) * 1e6;
    for (const KernelMeasurement* row : rows_over_octaves(gpu, op)) {
      if (row->latency_us < telling || row->earlier >= kFreshCalls) continue;
      const Kernel kernel = kernel_of(*row);
      const Seconds isolated =
          predictor->duration(kernel) + predictor->isolated_launch_overhead(kernel);
      residuals.push_back(std::log(isolated.value() * 1e6 / row->latency_us));
    }
  }
  std::ranges::sort(residuals);
  return residuals;
}

double at_share(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(place + 0.5)];
}

/// A GPU's own offset and the spread of its shapes around it.
struct Offset {
  double median = 0;
  double shape = 0;
};

Offset offset_of(const std::vector<double>& sorted) {
  const double half_width = 0.5 * (at_share(sorted, 0.9) - at_share(sorted, 0.1));
  return {at_share(sorted, 0.5), half_width / kEightyPercent};
}

double root_mean_square(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// Two sessions of one GPU: linear layers and batched products were timed apart. How much their
/// difference varies from GPU to GPU is shared by two sessions.
double session_spread(const PredictorWeights& weights) {
  std::vector<double> differences;
  double mean = 0;
  for (const TrainedGpu& gpu : weights.gpus) {
    differences.push_back(gpu.effect.gemm_slowdown - gpu.effect.batched_slowdown);
    mean += differences.back() / static_cast<double>(weights.gpus.size());
  }
  for (double& difference : differences) difference = (difference - mean) / std::sqrt(2);
  return root_mean_square(differences);
}

PredictorWeights under_rule(PredictorWeights weights, const EffectRule& rule) {
  weights.rule = rule;
  return weights;
}

LogSpread spread_over(const std::vector<Offset>& offsets) {
  std::vector<double> medians, shapes;
  for (const Offset& offset : offsets) {
    medians.push_back(offset.median);
    shapes.push_back(offset.shape);
  }
  const std::size_t degrees = offsets.empty() ? 0 : offsets.size() - 1;
  return {.gpu = root_mean_square(medians) * small_sample_factor(degrees),
          .shape = root_mean_square(shapes)};
}

}  // namespace

Spreads fit_spreads(const Folds& folds, const EffectRule& rule, std::size_t judge) {
  const bool judged = judge < folds.size();
  const PredictorWeights own = under_rule(judged ? folds.without(judge) : folds.all(), rule);
  const double session = session_spread(own);
  Spreads spreads;
  for (std::size_t c = 0; c < kSpreadClasses; ++c) {
    std::vector<Offset> left_out, fitted;
    for (std::size_t g = 0; g < folds.size(); ++g) {
      if (g == judge) continue;
      const PredictorWeights others =
          under_rule(judged ? folds.without(g, judge) : folds.without(g), rule);
      if (!others.trained()) continue;
      const auto spread_class = static_cast<SpreadClass>(c);
      const auto unseen = residuals(folds.gpu(g), spread_class, others);
      const auto seen = residuals(folds.gpu(g), spread_class, own);
      if (unseen.empty()) continue;
      left_out.push_back(offset_of(unseen));
      fitted.push_back(offset_of(seen));
    }
    spreads.by_rule[c] = spread_over(left_out);
    spreads.measured[c] = {.gpu = session, .shape = spread_over(fitted).shape};
    if (!left_out.empty()) continue;  // no such class was timed: an implicit product stands in
    spreads.by_rule[c] = spreads.by_rule[static_cast<std::size_t>(SpreadClass::batched)];
    spreads.measured[c] = spreads.measured[static_cast<std::size_t>(SpreadClass::batched)];
  }
  return spreads;
}

std::vector<Coverage> leave_one_out_coverage(const Folds& folds, const EffectRule& rule) {
  std::vector<Coverage> coverage;
  for (std::size_t judge = 0; judge < folds.size(); ++judge) {
    const PredictorWeights others = under_rule(folds.without(judge), rule);
    const Spreads spreads = fit_spreads(folds, rule, judge);
    for (std::size_t c = 0; c < kSpreadClasses; ++c) {
      const auto spread_class = static_cast<SpreadClass>(c);
      const auto errors = residuals(folds.gpu(judge), spread_class, others);
      if (errors.empty()) continue;
      const double half_width = log_half_width(spreads.by_rule[c]);
      const auto inside = std::ranges::count_if(
          errors, [&](double error) { return std::abs(error) <= half_width; });
      coverage.push_back({folds.gpu(judge).spec.id, spread_class,
                          static_cast<double>(inside) / static_cast<double>(errors.size()),
                          half_width});
    }
  }
  return coverage;
}

}  // namespace tessera
