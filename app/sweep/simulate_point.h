#pragma once

#include <string>

#include "predictor/weights/weights.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Simulates one step and returns what sweeps compare, as a JSON object: gpus, step_time_s,
/// tokens_per_s, tokens_per_s_per_gpu, mfu, bubble_fraction, exposed_communication_s,
/// peak_memory_bytes (allocated), reserved, context, nccl and device_memory_bytes, memory_bytes (of
/// a GPU), fits. Once per process (sim/engine/engine.h). Throws InputError where the scenario
/// cannot be planned.
std::string simulate_point(const Scenario& scenario, const PredictorWeights& weights);

}  // namespace tessera
