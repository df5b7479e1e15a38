#pragma once

#include "predictor/weights/weights.h"
#include "sim/config/catalog.h"

namespace tessera::test {

// What the repository ships, loaded once.

inline const Catalog& shipped_configs() {
  static const Catalog shipped(TESSERA_SOURCE_DIR "/configs");
  return shipped;
}

inline const PredictorWeights& trained() {
  static const PredictorWeights weights =
      load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb");
  return weights;
}

}  // namespace tessera::test
