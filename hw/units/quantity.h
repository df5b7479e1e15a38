#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace tessera {

/// A number with a physical dimension; `Tag` keeps seconds from being added to bytes.
/// Construction from a bare number is explicit; `value()` leaves the type system on purpose.
template <class Tag, class Rep = double>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  // What the line above implies, spelled out: compilers call <=> of doubles as a function and test
  // its answer, and simulations compare dates all the time.
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(Rep factor) {
    value_ *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return a *= factor; }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return a *= factor; }
  // A count times a fraction would silently be the count times 0: round it in sight instead.
  template <std::floating_point F>
  requires std::integral<Rep>
  friend constexpr Quantity operator*(Quantity a, F factor) = delete;
  template <std::floating_point F>
  requires std::integral<Rep>
  friend constexpr Quantity operator*(F factor, Quantity a) = delete;
  friend constexpr Quantity operator/(Quantity a, Rep divisor) {
    return Quantity(a.value_ / divisor);
  }
  /// Ratio of two quantities of one dimension.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag>;  ///< a count of operations; a fused multiply-add is two
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using Hertz = Quantity<struct HertzTag>;
using Watts = Quantity<struct WattsTag>;

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) {
  return Seconds(static_cast<double>(bytes.value()) / rate.value());
}
constexpr Seconds operator/(Flops flops, FlopsPerSecond rate) {
  return Seconds(flops.value() / rate.value());
}
constexpr BytesPerSecond operator/(Bytes bytes, Seconds time) {
  return BytesPerSecond(static_cast<double>(bytes.value()) / time.value());
}
constexpr FlopsPerSecond operator/(Flops flops, Seconds time) {
  return FlopsPerSecond(flops.value() / time.value());
}

// Scaled in long double so that 12.3_us is the double nearest to 12.3e-6, as in hw/units/text.h.
inline namespace literals {
constexpr Seconds operator""_s(long double v) {
  return Seconds(static_cast<double>(v));
}
constexpr Seconds operator""_s(unsigned long long v) {
  return Seconds(static_cast<double>(v));
}
constexpr Seconds operator""_ms(long double v) {
  return Seconds(static_cast<double>(v * 1e-3L));
}
constexpr Seconds operator""_ms(unsigned long long v) {
  return Seconds(static_cast<double>(static_cast<long double>(v) * 1e-3L));
}
constexpr Seconds operator""_us(long double v) {
  return Seconds(static_cast<double>(v * 1e-6L));
}
constexpr Seconds operator""_us(unsigned long long v) {
  return Seconds(static_cast<double>(static_cast<long double>(v) * 1e-6L));
}
constexpr Bytes operator""_B(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v));
}
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 30);
}
constexpr BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond(static_cast<double>(v * 1e9L));
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(static_cast<long double>(v) * 1e9L));
}
constexpr FlopsPerSecond operator""_TFLOPS(long double v) {
  return FlopsPerSecond(static_cast<double>(v * 1e12L));
}
constexpr FlopsPerSecond operator""_TFLOPS(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(static_cast<long double>(v) * 1e12L));
}
}  // namespace literals

}  // namespace tessera
