#pragma once

#include <cmath>
#include <cstdint>

namespace tessera::remat {

/// xorshift64*: the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {
    for (int i = 0; i < 4; ++i) next();
  }
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Dull;
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, n), n >= 1.
  std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

 private:
  std::uint64_t state_;
};

/// 2^x from additions and multiplications alone: libraries' exp differs between machines.
/// Relative error below 1e-9 for x <= 1000.
inline double portable_exp2(double x) {
  if (x < -1000) return 0;
  const double whole = static_cast<double>(static_cast<std::int64_t>(x < 0 ? x - 1 : x));
  const double r = (x - whole - 0.5) * 0.69314718055994530942;
  double sum = 1;
  for (int k = 12; k >= 1; --k) sum = 1 + sum * r / k;
  sum *= 1.41421356237309504880;
  return std::ldexp(sum, static_cast<int>(whole));
}

inline double portable_exp(double x) {
  return portable_exp2(x * 1.44269504088896340736);
}

/// log2(x) for x from 2^-60 to 2^60, to 1e-12, by bisection.
inline double portable_log2(double x) {
  double low = -61;
  double high = 61;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (portable_exp2(middle) < x ? low : high) = middle;
  }
  return low;
}

}  // namespace tessera::remat
