#pragma once

#include <algorithm>

namespace tessera {

// A 70-75 W card settles to its power limit within milliseconds; calls between the two regimes are
// left out of fits.
inline constexpr double kSettledFrom = 5e-3;    // [s]
inline constexpr double kUnsettledUpTo = 1e-3;  // [s]

/// True where a card with a power limit (`sustained_flops` > 0) was on its way to it.
inline bool was_settling(double seconds, double sustained_flops) {
  return sustained_flops > 0 && seconds > kUnsettledUpTo && seconds < kSettledFrom;
}

/// The limit that applied to a call of that duration [FLOP/s]; 0 = none.
inline double limit_during(double seconds, double sustained_flops) {
  return seconds >= kSettledFrom ? sustained_flops : 0;
}

/// Weight in a fit: calls near the launch floor say little about the GPU.
inline double call_weight(double seconds, double floor) {
  return std::clamp(1 - floor / seconds, 0.1, 1.0);
}

}  // namespace tessera
