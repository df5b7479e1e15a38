#pragma once

#include "hw/units/quantity.h"

namespace tessera {

/// Shorter differences between dates of a timeline are rounding of the clock, not waiting.
inline constexpr Seconds kClockTick = 1e-9_s;

}  // namespace tessera
