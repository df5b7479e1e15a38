#pragma once

#include <cstdint>
#include <string>

#include "lab/fit/tensor/tensor_rows.h"
#include "predictor/tensor/tensor_weights.h"

namespace tessera {

/// How often the 80 % interval of a TensorGemmPredictor holds the measured time, library unknown.
struct TensorCoverage {
  std::string gpu;
  bool measured = false;  ///< false: predicted by the rule for unseen GPUs
  std::int64_t n = 0;
  double inside_pct = 0;       ///< of the kernels of all durations
  double long_inside_pct = 0;  ///< of those of 50 us and longer
  double mean_half_width = 0;  ///< in log time
};

/// On the shapes of TensorHoldout::shapes, of position `gpu` in `data`, which `weights` must not
/// have seen.
TensorCoverage tensor_coverage(const TensorData& data, const TensorWeights& weights, int gpu);

}  // namespace tessera
