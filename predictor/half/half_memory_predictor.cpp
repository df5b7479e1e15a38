#include "predictor/half/half_memory_predictor.h"

#include <algorithm>
#include <cmath>

#include "hw/units/input_error.h"
#include "predictor/half/half_memory_fit.h"

namespace tessera {
namespace {

constexpr double kCopiedSpread = 0.15;
constexpr double kCardSpread = 0.03;  // judgement: cards of one type

HalfMemoryParameters<double> parameters_of(const HalfMemoryWeights& weights, HalfMemoryOp op) {
  return HalfMemoryParameters<double>::from_unconstrained(
      std::span<const double>(weights.classes[static_cast<std::size_t>(op)]));
}

}  // namespace

double half_memory_bytes(const HalfMemoryCall& call) {
  const bool three = call.op == HalfMemoryOp::add || call.op == HalfMemoryOp::silu_mul;
  return (three ? 3 : 2) * 2.0 * static_cast<double>(call.rows) * static_cast<double>(call.width);
}

HalfMemoryPredictor::HalfMemoryPredictor(const GpuSpec& gpu, HalfMemoryWeights weights)
    : spec_(gpu), gpu_(half_memory_gpu(gpu)), weights_(std::move(weights)) {}

KernelPrediction HalfMemoryPredictor::predict(const HalfMemoryCall& call) const {
  if (call.rows < 1 || call.width < 1)
    throw InputError(
        {std::string(name_of(call.op)), "a size is below 1", "rows and width are at least 1"});
  return predict(call.op,
                 {.bytes = half_memory_bytes(call), .rows = static_cast<double>(call.rows)});
}

KernelPrediction HalfMemoryPredictor::predict(HalfMemoryOp op, const HalfMemoryShape& shape) const {
  const HalfMemoryParameters<double> p = parameters_of(weights_, op);
  KernelPrediction result;
  result.duration = Seconds(half_memory_seconds(shape, gpu_, p));
  result.memory_time = Seconds(result.duration.value() - p.launch);
  result.utilization = std::min(1.0, shape.bytes / gpu_.bandwidth / result.duration.value());
  const double copied = spec_.id == weights_.gpu ? 0 : kCopiedSpread;
  result.spread = {.gpu = std::hypot(kCardSpread, copied),
                   .shape = weights_.spread[static_cast<std::size_t>(op)]};
  return result;
}

}  // namespace tessera
