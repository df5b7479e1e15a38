#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/fit/tensor/tensor_rows.h"
#include "predictor/tensor/tensor_weights.h"

namespace tessera {

/// Calls between two durations whose m, n and k are 1024 and more.
struct TensorLoadCalls {
  std::int64_t n = 0;
  double rate = 0;       ///< median [FLOP/s]
  double error_pct = 0;  ///< median of predicted / measured time - 1 [%], the library unknown
};

/// A library's products on one GPU beside what a step is told: predictions under load (Load).
struct TensorLoad {
  std::string gpu, stack;
  std::array<TensorLoadCalls, 3> calls;  ///< between kTensorLoadBounds
};

/// Where the durations of TensorLoad::calls begin and end [s].
inline constexpr std::array<double, 4> kTensorLoadBounds{1e-3, 10e-3, 50e-3, 1e3};

/// One entry per library of `data`, whose products `weights` were fitted to.
std::vector<TensorLoad> products_under_load(const TensorData& data, const TensorWeights& weights);

}  // namespace tessera
