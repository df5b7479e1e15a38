#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

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

/// portable_exp of each of `values`, to the last bit: eight beside each other, as the steps of one
/// wait for each other.
inline void portable_exp_each(std::vector<double>& values) {
  constexpr std::size_t kTogether = 8;
  using Block = std::array<double, kTogether>;
  for (std::size_t from = 0; from < values.size(); from += kTogether) {
    const std::size_t count = std::min(kTogether, values.size() - from);
    Block x{}, whole{}, r{}, sum{};
    for (std::size_t i = 0; i < count; ++i) x[i] = values[from + i] * 1.44269504088896340736;
    for (std::size_t i = 0; i < kTogether; ++i) {
      const double bounded = std::max(x[i], -1001.0);
      whole[i] =
          static_cast<double>(static_cast<std::int64_t>(bounded < 0 ? bounded - 1 : bounded));
      r[i] = (bounded - whole[i] - 0.5) * 0.69314718055994530942;
      sum[i] = 1;
    }
    for (int k = 12; k >= 1; --k)
      for (std::size_t i = 0; i < kTogether; ++i) sum[i] = 1 + sum[i] * r[i] / k;
    for (std::size_t i = 0; i < count; ++i) {
      const double scaled = sum[i] * 1.41421356237309504880;
      values[from + i] = x[i] < -1000 ? 0 : std::ldexp(scaled, static_cast<int>(whole[i]));
    }
  }
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
