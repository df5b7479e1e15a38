#pragma once

#include "predictor/weights.h"
#include "sim/validate/training_run_scenario.h"

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

inline Scenario scenario_of(const TrainingRun& run) {
  static const FrameworkAliases aliases = framework_aliases(shipped_configs());
  return scenario_of_training_run(run, aliases, shipped_configs());
}

}  // namespace tessera::test
