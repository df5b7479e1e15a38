#pragma once

#include <cmath>
#include <cstdint>

#include "hw/units/quantity.h"

namespace tessera {

/// Wall-clock time of a long run, in whole microseconds: sums of it are exact, so that the parts of
/// a year add up to the year. Reaches 290,000 years.
using Micros = Quantity<struct MicrosTag, std::int64_t>;

/// As far as a run may reach: 100 years. Longer times are cut to it, so that sums stay in range.
constexpr Micros kLongestTime = Micros(std::int64_t{100} * 366 * 86'400 * 1'000'000);

inline Micros to_micros(Seconds time) {
  const double micros = std::round(time.value() * 1e6);
  const auto most = static_cast<double>(kLongestTime.value());
  return micros < most ? Micros(static_cast<std::int64_t>(micros)) : kLongestTime;
}
constexpr Seconds to_seconds(Micros time) {
  return Seconds(static_cast<double>(time.value()) * 1e-6);
}
constexpr double in_hours(Micros time) {
  return static_cast<double>(time.value()) / 3.6e9;
}
constexpr Micros days_of(std::int64_t days) {
  return Micros(days * 86'400 * 1'000'000);
}

}  // namespace tessera
