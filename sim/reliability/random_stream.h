#pragma once

#include <cmath>
#include <cstdint>

#include "hw/units/quantity.h"

namespace tessera {

/// Random numbers that are the same with every compiler and library: SplitMix64 (Steele, Lea and
/// Flood, OOPSLA 2014). Streams of different `stream` are independent of each other.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream)
      : state_(mixed(seed + kGolden) ^ mixed(stream * kGolden + 1)) {}

  std::uint64_t bits() { return mixed(state_ += kGolden); }
  /// In (0, 1].
  double uniform() { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }
  /// In [0, count). The bias is below count / 2^64.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count));
  }
  Seconds exponential(Seconds mean) { return mean * -std::log(uniform()); }
  /// Weibull of this mean; `shape` 1 is the exponential one, below 1 infants die most.
  Seconds weibull(Seconds mean, double shape) {
    const double scale = 1 / std::tgamma(1 + 1 / shape);
    return mean * (scale * std::pow(-std::log(uniform()), 1 / shape));
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace tessera
