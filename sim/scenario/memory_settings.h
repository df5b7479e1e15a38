#pragma once

#include <cstdint>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// Who chooses what leaves a GPU that runs short while the step runs.
enum class PressurePolicy : std::uint8_t {
#include "configs/schema/words/pressure_policy.inc"
};

/// What a plan may pack while it waits for backward.
enum class ActivationPacking : std::uint8_t {
#include "configs/schema/words/activation_packing.inc"
};

/// Where a plan may have optimizer states between updates.
enum class OptimizerStates : std::uint8_t {
#include "configs/schema/words/optimizer_states.inc"
};

/// Who chooses what a step runs again and what it copies to host memory: one of sim/remat, of
/// Megatron's options, or the optimizer's states alone.
enum class MemoryPlanner : std::uint8_t {
#include "configs/schema/words/memory_planner.inc"
};

/// The section `memory` of a scenario: what happens where a step does not fit.
struct MemorySettings {
#include "configs/schema/fields/memory_settings.inc"
  bool operator==(const MemorySettings&) const = default;
};

}  // namespace tessera
