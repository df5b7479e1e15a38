#pragma once

namespace tessera {

/// A value with its derivatives by N parameters. The laboratory fits with it (lab/fit/dual.h):
/// formulas that are written once, as templates, predict with `double` and give the gradient with
/// `Dual`.
template <int N>
struct Dual;

}  // namespace tessera
