#pragma once

#include <string>

#include "predictor/weights/weights.h"
#include "tests/predictor/test_files.h"

namespace tessera {

/// What a weights file with `weights` holds.
inline std::string bytes_of(const PredictorWeights& weights, const ScratchFolder& folder) {
  save_weights(weights, folder.path() / "weights.pb");
  return read_file(folder.path() / "weights.pb");
}

/// The same of a file with one section alone.
inline std::string bytes_of(const TensorWeights& section, const ScratchFolder& folder) {
  PredictorWeights weights;
  weights.tensor_gemm = section;
  return bytes_of(weights, folder);
}
inline std::string bytes_of(const AttentionWeights& section, const ScratchFolder& folder) {
  PredictorWeights weights;
  weights.attention = section;
  return bytes_of(weights, folder);
}

}  // namespace tessera
