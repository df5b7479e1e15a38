#pragma once

#include <string>

#include "hw/units/quantity.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Between which factors of the simulated memory of a GPU 80 % of measured ones lie.
struct MemorySpread {
  double low = 1;   ///< in (0, 1]
  double high = 1;  ///< 1 or more
  std::string basis;

  Bytes low_of(Bytes simulated) const;
  Bytes high_of(Bytes simulated) const;
};

/// Of the framework and kind of step that `scenario` runs.
MemorySpread memory_spread(const Scenario& scenario);

/// What is said of a step on a GPU of limited memory.
enum class FitVerdict : std::uint8_t {
  fits,          ///< even at the upper end of the interval
  within_error,  ///< the memory of the GPU lies within the interval
  does_not_fit,  ///< not even at its lower end
};

FitVerdict verdict_of(Bytes needed, Bytes capacity, const MemorySpread& spread);
/// "fits", "within the error", "does not fit".
std::string text_of(FitVerdict verdict);

}  // namespace tessera
