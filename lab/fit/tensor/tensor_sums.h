#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/fit/tensor/tensor_rows.h"
#include "lab/fit/tensor/tensor_training.h"

namespace tessera {

/// Sums of eight kernels of one library with m, n and k of 1024 and more, each with the same share
/// of the time: what a layer is. Errors of kernels partly cancel.
struct TensorSumError {
  std::string gpu;
  std::int64_t sums = 0;
  double mean_pct = 0;  ///< of |predicted / measured - 1| [%]
  double p90_pct = 0;
};

/// Over the shapes that `fit` did not see (TensorHoldout::shapes), in an order drawn with a fixed
/// seed; one entry per GPU, the libraries known.
std::vector<TensorSumError> sums_of_eight(const TensorData& data, const TensorFit& fit);

}  // namespace tessera
