#pragma once

#include "predictor/fp32/dual_forward.h"

namespace tessera {

/// Sharpness of the soft minimum over tiles, splits and algorithms; penalties are fitted for this
/// value.
inline constexpr int kTileSharpness = 20;

/// x^-kTileSharpness; x a time relative to another one, so that nothing overflows.
inline double soft_minimum_term(double x) {
  const double x4 = x * x * x * x;
  const double x16 = x4 * x4 * x4 * x4;
  static_assert(kTileSharpness == 16 + 4);
  return 1 / (x16 * x4);
}
template <int N>
Dual<N> soft_minimum_term(const Dual<N>& x) {
  const double term = soft_minimum_term(x.value);
  return {term, x.derivatives * (-kTileSharpness * term / x.value)};
}

}  // namespace tessera
