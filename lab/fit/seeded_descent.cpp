#include "lab/fit/seeded_descent.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

/// Uniform number in [0, 1).
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

}  // namespace

MlpWeights initial_mlp(const std::vector<int>& sizes, std::mt19937_64& random) {
  MlpWeights mlp{.sizes = sizes, .values = {}};
  mlp.values.reserve(mlp_value_count(sizes));
  for (std::size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const int in = sizes[layer], out = sizes[layer + 1];
    const double bound = std::sqrt(6.0 / (in + out));
    for (int i = 0; i < in * out; ++i) mlp.values.push_back(bound * (2 * uniform(random) - 1));
    for (int i = 0; i < out; ++i) mlp.values.push_back(0);
  }
  return mlp;
}

void Adam::update(std::vector<double>& values, const std::vector<double>& gradient, double rate) {
  constexpr double kFirst = 0.9, kSecond = 0.999, kEpsilon = 1e-12;
  ++step_;
  const double correction = std::sqrt(1 - std::pow(kSecond, step_)) / (1 - std::pow(kFirst, step_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    first_[i] = kFirst * first_[i] + (1 - kFirst) * gradient[i];
    second_[i] = kSecond * second_[i] + (1 - kSecond) * gradient[i] * gradient[i];
    values[i] -= rate * correction * first_[i] / (std::sqrt(second_[i]) + kEpsilon);
  }
}

void descend(std::size_t examples, const DescentSchedule& schedule, std::mt19937_64& random,
             const std::function<void(std::span<const std::size_t>, double)>& step) {
  std::vector<std::size_t> order(examples);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int epoch = 0; epoch < schedule.epochs; ++epoch) {
    for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % (i + 1)]);
    const double rate = schedule.rate * 0.5 * (1 + std::cos(M_PI * epoch / schedule.epochs));
    for (std::size_t begin = 0; begin < order.size(); begin += schedule.batch)
      step(std::span(order).subspan(begin, std::min(schedule.batch, order.size() - begin)), rate);
  }
}

}  // namespace tessera
