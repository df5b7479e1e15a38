#pragma once

#include "hw/units/quantity.h"

namespace tessera {

/// Which ranks may stand for others that do the same at the same times. A fold that is on is done
/// as far as the ranks are symmetric; the result says where they are not.
struct FoldSettings {
  bool tensor = true;  ///< ranks of a tensor-parallel group
  bool data = true;    ///< replicas of the model
  bool rails = true;   ///< GPUs of different numbers in their nodes, with their NICs

  bool any() const { return tensor || data; }
  bool operator==(const FoldSettings&) const = default;
};

/// The section `simulation` of a scenario.
struct SimulationSettings {
  FoldSettings fold;
  Seconds time_limit;  ///< of the wall clock for one simulation; 0: none

  bool operator==(const SimulationSettings&) const = default;
};

}  // namespace tessera
