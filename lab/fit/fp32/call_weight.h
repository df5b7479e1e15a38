#pragma once

#include <algorithm>

namespace tessera {

/// True where a card with a power limit (`sustained_flops` > 0) may have felt it: a 70-75 W card
/// settles to its limit within milliseconds. Fits of the SM's own speed leave such calls out.
inline bool feels_power_limit(double seconds, double sustained_flops) {
  constexpr double kUnsettledUpTo = 1e-3;  // [s]
  return sustained_flops > 0 && seconds > kUnsettledUpTo;
}

/// Weight in a fit: calls near the launch floor say little about the GPU.
inline double call_weight(double seconds, double floor) {
  return std::clamp(1 - floor / seconds, 0.1, 1.0);
}

}  // namespace tessera
