#include "lab/fit/tensor/tensor_training.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "predictor/tensor/tensor_effect.h"

namespace tessera {
namespace {

constexpr double kLong = 50e-6;            ///< [s]
constexpr double kEightyPercent = 1.2816;  ///< standard deviations that hold 80 %

double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, place);
  return *place;
}

std::int64_t rows_of(const TensorData& data, int stack) {
  return std::ranges::count(data.samples, stack, &TensorSample::stack);
}

/// Standard deviation of log time as the 80 % of smallest errors show it.
double kernel_spread(const TensorData& data, const TensorFit& fit,
                     const std::vector<TensorSample>& samples, int gpu, bool longer) {
  std::vector<double> errors;
  for (const TensorSample& sample : samples) {
    const TensorStack& stack = data.stacks[sample.stack];
    if (stack.gpu == gpu && (sample.seconds >= kLong) == longer)
      errors.push_back(std::abs(std::log(fit.timed_seconds(sample, stack) / sample.seconds)));
  }
  return quantile(errors, 0.8) / kEightyPercent;
}

/// Root mean square, over libraries, of the median error where the library is not known.
double stack_spread(const TensorData& data, const TensorWeights& weights, const TensorFit& fit,
                    const std::vector<TensorSample>& samples, int gpu) {
  const TensorStackEffect<double> unknown = unknown_stack(weights, data.gpus[gpu].id);
  double squares = 0;
  int stacks = 0;
  for (int i = 0; i < static_cast<int>(data.stacks.size()); ++i) {
    const TensorStack& stack = data.stacks[i];
    if (stack.gpu != gpu) continue;
    std::vector<double> errors;
    for (const TensorSample& sample : samples) {
      if (sample.stack != i || sample.seconds < kLong) continue;
      const double predicted =
          tensor_gemm_seconds(sample.shape, stack.traits, fit.shared, fit.gpus[gpu], unknown) +
          unknown.launch_seconds;
      errors.push_back(std::log(predicted / sample.seconds));
    }
    const double median = quantile(errors, 0.5);
    squares += median * median;
    ++stacks;
  }
  return stacks > 0 ? std::sqrt(squares / stacks) : 0;
}

GemmRange range_of(const TensorData& data) {
  GemmRange range{1, 0, 0, 0};
  for (const TensorSample& sample : data.samples) {
    range[1] = std::max(range[1], sample.shape.m);
    range[2] = std::max(range[2], sample.shape.n);
    range[3] = std::max(range[3], sample.shape.k);
  }
  return range;
}

}  // namespace

TensorWeights tensor_weights_of(const TensorData& data, const TensorFit& fit) {
  TensorWeights weights{.file = data.file,
                        .fnv1a = data.fnv1a,
                        .rows = static_cast<std::int64_t>(fit.rows),
                        .quantisation_rule =
                            "whole-wave share by generation, as fitted on each of the GPUs; for "
                            "other generations that of the nearest, which no data confirm",
                        .shared = fit.shared,
                        .gpus = {},
                        .range = range_of(data)};
  for (std::size_t i = 0; i < data.gpus.size(); ++i) {
    const GpuSpec& gpu = data.gpus[i];
    weights.gpus.push_back({.gpu = gpu.id,
                            .die = gpu.die,
                            .architecture = gpu.architecture,
                            .effect = fit.gpus[i],
                            .stacks = {}});
  }
  for (std::size_t i = 0; i < data.stacks.size(); ++i) {
    const TensorStack& stack = data.stacks[i];
    TensorGpuWeights& gpu = weights.gpus[stack.gpu];
    gpu.clock = data.gpus[stack.gpu].boost_clock.value();
    gpu.watts_per_flops = data.gpus[stack.gpu].tdp.value() / stack.traits.flops;
    gpu.stacks.push_back({.name = stack.name,
                          .precision = stack.precision,
                          .rows = rows_of(data, static_cast<int>(i)),
                          .effect = fit.stacks[i]});
  }
  return weights;
}

TensorTraining train_tensor_gemm(const TensorData& data) {
  const auto kept = [](const TensorSample& sample) {
    return !held_out(sample.shape, TensorHoldout::shapes);
  };
  TensorTraining training{.all = fit_tensor_gemm(data, data.samples),
                          .shapes = fit_tensor_gemm(data, filtered(data.samples, kept))};
  training.weights = tensor_weights_of(data, training.all);
  const TensorWeights judged = tensor_weights_of(data, training.shapes);
  const std::vector<TensorSample> unseen =
      filtered(data.samples, [&](const TensorSample& sample) { return !kept(sample); });
  for (std::size_t i = 0; i < data.gpus.size(); ++i) {
    const auto gpu = static_cast<int>(i);
    TensorGpuWeights& weights = training.weights.gpus[i];
    weights.long_spread = kernel_spread(data, training.shapes, unseen, gpu, true);
    weights.short_spread = kernel_spread(data, training.shapes, unseen, gpu, false);
    weights.stack_spread = stack_spread(data, judged, training.shapes, unseen, gpu);
  }
  return training;
}

}  // namespace tessera
