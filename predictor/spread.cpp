#include "predictor/spread.h"

#include <cmath>

namespace tessera {
namespace {

// 80 % of a normal distribution lie within this many standard deviations.
constexpr double kEightyPercent = 1.2816;

}  // namespace

SpreadClass spread_class(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return SpreadClass::linear;
    case KernelKind::batched_gemm:
      return SpreadClass::batched;
    case KernelKind::softmax:
      return SpreadClass::softmax;
    case KernelKind::layer_norm:
      return SpreadClass::layer_norm;
    case KernelKind::convolution:
      return SpreadClass::convolution;
    default:
      return SpreadClass::elementwise;
  }
}

void SpreadSum::add(Seconds time, const LogSpread& spread) {
  const double shape = time.value() * spread.shape;
  time_ += time.value();
  gpu_ += time.value() * spread.gpu;
  shape_squares_ += shape * shape;
}

LogSpread SpreadSum::relative() const {
  if (time_ <= 0) return {};
  return {gpu_ / time_, std::sqrt(shape_squares_) / time_};
}

double log_half_width(const LogSpread& spread) {
  return kEightyPercent * std::hypot(spread.gpu, spread.shape);
}

Interval interval_80(Seconds time, const LogSpread& spread) {
  const double factor = std::exp(log_half_width(spread));
  return {time / factor, time * factor};
}

}  // namespace tessera
