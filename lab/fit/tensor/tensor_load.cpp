#include "lab/fit/tensor/tensor_load.h"

#include <algorithm>
#include <functional>

#include "predictor/tensor/tensor_effect.h"

namespace tessera {
namespace {

constexpr double kLeastExtent = 1024;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

bool is_large(const TensorShape& shape) {
  return std::min({shape.m, shape.n, shape.k}) >= kLeastExtent;
}

TensorLoadCalls calls_of(const std::vector<TensorSample>& samples,
                         const std::function<double(const TensorShape&)>& predicted) {
  if (samples.empty()) return {};
  std::vector<double> rates, errors;
  for (const TensorSample& sample : samples) {
    rates.push_back(sample.shape.flops() / sample.seconds);
    errors.push_back(100 * (predicted(sample.shape) / sample.seconds - 1));
  }
  return {static_cast<std::int64_t>(samples.size()), median(std::move(rates)),
          median(std::move(errors))};
}

/// Of a step on the GPU of `stack`, which does not know the library.
std::function<double(const TensorShape&)> under_load(const TensorData& data,
                                                     const TensorWeights& weights,
                                                     const TensorStack& stack) {
  TensorEffect effect = tensor_effect(data.gpus[stack.gpu], stack.precision, weights);
  put_under_load(effect);
  return [=, shared = weights.shared, traits = stack.traits](const TensorShape& shape) {
    return tensor_gemm_seconds(shape, traits, shared, effect.gpu, effect.stack) +
           effect.stack.launch_seconds;
  };
}

}  // namespace

std::vector<TensorLoad> products_under_load(const TensorData& data, const TensorWeights& weights) {
  std::vector<TensorLoad> loads;
  for (int stack = 0; stack < static_cast<int>(data.stacks.size()); ++stack) {
    const TensorStack& library = data.stacks[stack];
    const auto own =
        filtered(data.samples, [&](const TensorSample& sample) { return sample.stack == stack; });
    const auto predicted = under_load(data, weights, library);
    TensorLoad load{.gpu = data.gpus[library.gpu].id, .stack = library.name, .calls = {}};
    for (std::size_t i = 0; i < load.calls.size(); ++i)
      load.calls[i] = calls_of(filtered(own,
                                        [&](const TensorSample& sample) {
                                          return is_large(sample.shape) &&
                                                 sample.seconds >= kTensorLoadBounds[i] &&
                                                 sample.seconds < kTensorLoadBounds[i + 1];
                                        }),
                               predicted);
    loads.push_back(std::move(load));
  }
  return loads;
}

}  // namespace tessera
