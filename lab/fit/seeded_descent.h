#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "predictor/fp32/mlp.h"

namespace tessera {

/// Weights drawn uniformly from +-sqrt(6 / (in + out)) (Glorot and Bengio, 2010), biases 0; from
/// raw generator output, so the same with every standard library.
MlpWeights initial_mlp(const std::vector<int>& sizes, std::mt19937_64& random);

/// Adam (Kingma and Ba, 2015).
class Adam {
 public:
  explicit Adam(std::size_t values) : first_(values), second_(values) {}
  /// One step of `rate` against `gradient`.
  void update(std::vector<double>& values, const std::vector<double>& gradient, double rate);

 private:
  std::vector<double> first_, second_;
  int step_ = 0;
};

struct DescentSchedule {
  int epochs = 30;
  std::size_t batch = 64;
  double rate = 5e-3;  ///< of the first epoch; falls to zero as half a cosine
};

/// Calls `step` with the numbers of the examples of one batch and the learning rate, until every
/// epoch has gone through all `examples` in an order of its own.
void descend(std::size_t examples, const DescentSchedule& schedule, std::mt19937_64& random,
             const std::function<void(std::span<const std::size_t> batch, double rate)>& step);

}  // namespace tessera
