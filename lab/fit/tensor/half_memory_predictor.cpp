#include "lab/fit/tensor/half_memory_predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "hw/units/input_error.h"
#include "lab/fit/tensor/half_memory_fit.h"

namespace tessera {
namespace {

constexpr double kCopiedSpread = 0.15;
constexpr double kCardSpread = 0.03;  // judgement: cards of one type

HalfMemoryParameters<double> parameters_of(const HalfMemoryWeights& weights, HalfMemoryOp op) {
  return HalfMemoryParameters<double>::from_unconstrained(
      std::span<const double>(weights.classes[static_cast<std::size_t>(op)]));
}

/// What kernels of the reference are limited by: facts of A100-SXM4-80GB (configs/hw/gpus), whose
/// rows are the only ones that anything is fitted to.
constexpr std::string_view kReference = "A100-SXM4-80GB";
constexpr double kReferenceBandwidth = 2039e9, kReferenceIssue = 108 * 1410e6;
// A plain copy reaches this share of the bandwidth on any card (A100, H100, H200: 0.79 to 0.95,
// Azure/AI-benchmarking-guide). How sharply one limit takes over from the other is a judgement.
constexpr double kReachable = 0.86, kSharpness = 4;

/// Bytes per second that the SMs issue of a kernel that reaches `rate` with the reference's memory
/// behind it; infinite where memory is all that limits it.
double issue_rate(double rate, double reachable) {
  const double rest =
      std::pow(rate, -kSharpness) - std::pow(reachable * kReferenceBandwidth, -kSharpness);
  return rest <= 0 ? std::numeric_limits<double>::infinity() : std::pow(rest, -1 / kSharpness);
}

/// On another GPU a kernel's issue and L2 rates go with SMs times clock, memory's with bandwidth.
HalfMemoryParameters<double> moved(HalfMemoryParameters<double> p, const GpuSpec& gpu) {
  const double issue = gpu.sm_count * gpu.boost_clock.value() / kReferenceIssue;
  const double missed = p.efficiency * kReferenceBandwidth, hit = p.gain * missed;
  const double bandwidth = gpu.memory_bandwidth.value();
  const double reachable = std::max(kReachable, p.efficiency);
  const double rate = std::pow(std::pow(issue * issue_rate(missed, reachable), -kSharpness) +
                                   std::pow(reachable * bandwidth, -kSharpness),
                               -1 / kSharpness);
  p.efficiency = rate / bandwidth;
  p.gain = std::max(1.0, issue * hit / rate);
  return p;
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
  HalfMemoryParameters<double> p = parameters_of(weights_, op);
  if (weights_.gpu == kReference && spec_.id != kReference) p = moved(p, spec_);
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
