#pragma once

#include <cstdint>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// What a job does while nodes are missing.
enum class MissingNodes : std::uint8_t {
#include "configs/schema/words/missing_nodes.inc"
};

/// What the global batch becomes while replicas are missing.
enum class BatchWithout : std::uint8_t {
#include "configs/schema/words/batch_without.inc"
};

/// The section `reliability` of a scenario: what a long run meets. No step depends on it.
struct ReliabilitySettings {
#include "configs/schema/fields/reliability_settings.inc"

  bool operator==(const ReliabilitySettings&) const = default;
};

}  // namespace tessera
