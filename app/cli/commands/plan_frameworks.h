#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "predictor/weights/weights.h"
#include "sim/plan/memory/plan_progress.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// megatron, torchtitan, deepspeed, fsdp.
std::vector<std::string> plan_framework_names();

/// The fastest plan within `budget` that `framework` has options for, simulated as such, beside the
/// plan that is free to choose: {framework, options, settings, step_time_s, peak_bytes, fits,
/// free_plan, lost, tried}. `settings` make the same step of a scenario; `lost` is its time over
/// that of the free plan, less one, null where nothing fits; `approximate` says so where the
/// scenario's framework profile is of another framework, `refused` which ways the model does not
/// have. Simulates in child processes; `progress` counts plans.
nlohmann::ordered_json framework_plan(const Scenario& scenario, const PredictorWeights& weights,
                                      Bytes budget, const std::string& framework,
                                      const PlanProgress& progress);

}  // namespace tessera
