#pragma once

#include "hw/units/quantity.h"

namespace tessera {

/// Which ranks may stand for others that do the same at the same times. A fold that is on is done
/// as far as the ranks are symmetric; the result says where they are not.
struct FoldSettings {
#include "configs/schema/fields/fold_settings.inc"

  bool any() const {
    return tensor || data;
  }
  bool operator==(const FoldSettings&) const = default;
};

/// The section `simulation` of a scenario.
struct SimulationSettings {
#include "configs/schema/fields/simulation_settings.inc"

  bool operator==(const SimulationSettings&) const = default;
};

}  // namespace tessera
