#pragma once

#include <algorithm>
#include <cmath>

#include "predictor/fp32/dual_forward.h"

namespace tessera {

inline double value_of(double x) {
  return x;
}
template <int N>
double value_of(const Dual<N>& x) {
  return x.value;
}

/// (a^p + b^p)^(1/p): a smooth maximum; evaluated relative to the larger one, so it never
/// overflows. `a` and `b` positive, `p` >= 1.
template <class T>
T smooth_max(const T& a, const T& b, const T& p) {
  using std::exp;
  using std::log;
  const bool swap = value_of(a) < value_of(b);
  const T& large = swap ? b : a;
  const T& small = swap ? a : b;
  const T ratio = exp(p * log(small / large));
  return large * exp(log(T(1.0) + ratio) / p);
}

/// 1 / (1 + exp(-x)).
template <class T>
T sigmoid(const T& x) {
  using std::exp;
  return T(1.0) / (T(1.0) + exp(-x));
}

/// log(1 + exp(x)): maps any number to a positive one.
template <class T>
T softplus(const T& x) {
  using std::exp;
  using std::log;
  return value_of(x) > 30 ? x : log(T(1.0) + exp(x));
}

}  // namespace tessera
