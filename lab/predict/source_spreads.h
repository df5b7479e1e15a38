#pragma once

#include <cmath>

#include "predictor/spread.h"

namespace tessera {

/// What one server's software on one GPU does to all of its calls, beyond what the kernels' own
/// spreads know: standard deviations of log time. Each is the one with which the tables of its kind
/// (calls of 50 us and longer, tables weighing alike) are held by 80 % intervals as often as they
/// say; left out, a table's value comes from the others
/// (docs/decisions/0055-a-source-of-kernels.md; chosen again in 0072).
namespace source_spread {
/// Attention of a GPU that another one's profile stands in for: how far such profiles are off by
/// themselves holds a part of what programs differ by.
inline constexpr double kCopiedAttention = 0.13;
/// Windows, fp8 and 8-bit caches on a GPU that has a profile, which knows its own build alone.
inline constexpr double kOtherAttention = 0.20;
inline constexpr double kExperts = 0.29;
inline constexpr double kLatents = 0.39;
}  // namespace source_spread

/// `spread` with what a source adds to it; none stays none.
inline LogSpread with_source(LogSpread spread, double source) {
  if (log_half_width(spread) > 0) spread.gpu = std::hypot(spread.gpu, source);
  return spread;
}

}  // namespace tessera
