#pragma once

#include <cstdint>

namespace tessera {

/// Probability that at least one of `choices` different items, drawn from `items` with equal
/// chances, is among `part` of them (fractions of an item allowed); 0 <= part <= items.
constexpr double chance_of_meeting(double part, std::int64_t items, std::int64_t choices) {
  double missed = 1;
  for (std::int64_t drawn = 0; drawn < choices; ++drawn) {
    const double left = static_cast<double>(items - drawn);
    const double others = left - part;
    if (others <= 0) return 1;
    missed *= others / left;
  }
  return 1 - missed;
}

}  // namespace tessera
