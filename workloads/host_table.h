#pragma once

#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// What the host process of a GPU takes to hand work over, as measured; 0: the framework profile's.
struct HostTable {
#include "configs/schema/fields/host_table.inc"

  bool operator==(const HostTable&) const = default;
};

}  // namespace tessera
