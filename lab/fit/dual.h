#pragma once

#include <Eigen/Core>
#include <cmath>

namespace tessera {

/// A value with its derivatives by N parameters (forward-mode differentiation): formulas written
/// once as templates give the prediction with `double` and the training gradient with `Dual`.
template <int N>
struct Dual {
  using Derivatives = Eigen::Array<double, N, 1>;

  Dual() : derivatives(Derivatives::Zero()) {}
  Dual(double constant) : value(constant), derivatives(Derivatives::Zero()) {}  // NOLINT: implicit
  Dual(double v, const Derivatives& d) : value(v), derivatives(d) {}
  /// The parameter with number `index`.
  static Dual variable(double v, int index) {
    Dual result(v);
    result.derivatives(index) = 1;
    return result;
  }

  double value = 0;
  Derivatives derivatives;

  Dual operator-() const { return {-value, -derivatives}; }
  Dual& operator+=(const Dual& b) {
    value += b.value;
    derivatives += b.derivatives;
    return *this;
  }
  friend Dual operator+(Dual a, const Dual& b) { return a += b; }
  friend Dual operator-(const Dual& a, const Dual& b) {
    return {a.value - b.value, a.derivatives - b.derivatives};
  }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.derivatives * b.value + b.derivatives * a.value};
  }
  friend Dual operator*(const Dual& a, double b) { return {a.value * b, a.derivatives * b}; }
  friend Dual operator*(double a, const Dual& b) { return b * a; }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const double quotient = a.value / b.value;
    return {quotient, (a.derivatives - b.derivatives * quotient) / b.value};
  }
};

template <int N>
Dual<N> exp(const Dual<N>& x) {
  const double e = std::exp(x.value);
  return {e, x.derivatives * e};
}
template <int N>
Dual<N> log(const Dual<N>& x) {
  return {std::log(x.value), x.derivatives / x.value};
}

}  // namespace tessera
