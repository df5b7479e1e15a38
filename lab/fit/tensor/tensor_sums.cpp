#include "lab/fit/tensor/tensor_sums.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tessera {
namespace {

constexpr std::size_t kKernels = 8;
constexpr double kLeastExtent = 1024;
constexpr double kLong = 50e-6;  // [s]

bool is_large(const TensorSample& sample) {
  const TensorShape& shape = sample.shape;
  return std::min({shape.m, shape.n, shape.k}) >= kLeastExtent && sample.seconds >= kLong;
}

/// Fisher-Yates on raw generator output, so that the order is the same with every library.
void shuffle(std::vector<double>& values) {
  std::mt19937_64 random(1);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

/// |mean - 1| of every eight ratios in turn [%]: with equal shares of the measured time the sum is
/// off by the mean of the ratios.
void add_errors(std::vector<double> ratios, std::vector<double>& errors) {
  shuffle(ratios);
  for (std::size_t i = 0; i + kKernels <= ratios.size(); i += kKernels) {
    double sum = 0;
    for (std::size_t k = 0; k < kKernels; ++k) sum += ratios[i + k];
    errors.push_back(100 * std::abs(sum / kKernels - 1));
  }
}

TensorSumError summary(std::string gpu, std::vector<double> errors) {
  TensorSumError result{.gpu = std::move(gpu), .sums = static_cast<std::int64_t>(errors.size())};
  if (errors.empty()) return result;
  for (const double error : errors) result.mean_pct += error / static_cast<double>(errors.size());
  std::ranges::sort(errors);
  result.p90_pct = errors[errors.size() * 9 / 10];
  return result;
}

}  // namespace

std::vector<TensorSumError> sums_of_eight(const TensorData& data, const TensorFit& fit) {
  std::vector<std::vector<double>> ratios(data.stacks.size());
  for (const TensorSample& sample : data.samples) {
    if (!held_out(sample.shape, TensorHoldout::shapes) || !is_large(sample)) continue;
    const auto stack = static_cast<std::size_t>(sample.stack);
    ratios[stack].push_back(fit.timed_seconds(sample, data.stacks[stack]) / sample.seconds);
  }
  std::vector<TensorSumError> sums;
  for (std::size_t gpu = 0; gpu < data.gpus.size(); ++gpu) {
    std::vector<double> errors;
    for (std::size_t stack = 0; stack < data.stacks.size(); ++stack)
      if (data.stacks[stack].gpu == static_cast<int>(gpu)) add_errors(ratios[stack], errors);
    sums.push_back(summary(data.gpus[gpu].id, std::move(errors)));
  }
  return sums;
}

}  // namespace tessera
