#pragma once

#include <optional>
#include <string>

#include "app/fit/memory_need.h"
#include "app/fit/memory_spread.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// A step as simulated, or why it could not be.
struct FitStep {
  DeviceMemory device;  ///< of the fullest GPU
  Bytes capacity;
  std::optional<Seconds> time;  ///< empty where it was not simulated
  FitVerdict verdict = FitVerdict::fits;
  std::string refused;  ///< what the rules of scenarios or the simulation say; empty: nothing

  Bytes margin() const { return capacity - device.total(); }
};

/// Whether a step of many GPUs is simulated with the spines of its network as one of their rate, so
/// that replicas fold: a hash of messages over spines makes each of them unique, for minutes. What
/// a step holds does not depend on it.
bool spreads_messages(const Scenario& scenario);

/// Simulates one step; once per process (sim/engine/engine.h).
FitStep simulated_step(const Scenario& scenario, const PredictorWeights& weights);

}  // namespace tessera
