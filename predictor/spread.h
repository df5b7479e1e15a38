#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/units/quantity.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// How far a prediction may be off: standard deviations of log time, in two parts.
struct LogSpread {
  double gpu = 0;    ///< common to all kernels of a GPU: does not average out over a model
  double shape = 0;  ///< of one kernel shape: averages out over different kernels
};

/// Operator classes whose errors were measured apart.
enum class SpreadClass : std::uint8_t {
  linear,
  batched,
  elementwise,
  softmax,
  layer_norm,
  convolution
};
inline constexpr std::size_t kSpreadClasses = 6;

/// Kinds that were not measured count as the class they resemble.
SpreadClass spread_class(KernelKind kind);

/// One spread per class.
using SpreadByClass = std::array<LogSpread, kSpreadClasses>;

/// Errors of the model where the GPU was measured, and where a rule stands in for measurements.
struct Spreads {
  SpreadByClass measured{};
  SpreadByClass by_rule{};
};

/// Bounds that hold the true time with a probability of 80 %.
struct Interval {
  Seconds low, high;
};

/// Spread of a sum of kernel times: what a GPU's kernels have in common adds up, what is particular
/// to a shape partly cancels.
class SpreadSum {
 public:
  /// All runs of one distinct kernel.
  void add(Seconds time, const LogSpread& spread);
  /// Of the log of the sum; zero for an empty sum.
  LogSpread relative() const;

 private:
  double time_ = 0, gpu_ = 0, shape_squares_ = 0;
};

/// Half-width of the 80 % interval in log time.
double log_half_width(const LogSpread& spread);
/// `time` times and divided by e^half-width.
Interval interval_80(Seconds time, const LogSpread& spread);

}  // namespace tessera
