#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// How the NICs of the nodes are joined.
enum class FabricKind : std::uint8_t {
#include "configs/schema/words/fabric_kind.inc"
};

/// A cable of a `graph` fabric, both directions unless `one_way`. Ends are names of switches or
/// "node3.nic0".
struct FabricCable {
#include "configs/schema/fields/fabric_cable.inc"

  bool operator==(const FabricCable&) const = default;
};

/// The network between nodes. Sizes that a kind does not use stay zero.
struct FabricSpec {
#include "configs/schema/fields/fabric_spec.inc"

  bool operator==(const FabricSpec&) const = default;
};

/// What nccl-tests measured over all GPUs of so many nodes.
struct FabricMeasurement {
#include "configs/schema/fields/fabric_measurement.inc"
};

/// Links that are slower than described, or missing.
struct LinkFault {
#include "configs/schema/fields/link_fault.inc"
};

}  // namespace tessera
