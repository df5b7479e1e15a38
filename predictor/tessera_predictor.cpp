#include "predictor/tessera_predictor.h"

#include <algorithm>
#include <cmath>

#include "predictor/gpu_overlay.h"
#include "predictor/launch_floor.h"
#include "predictor/roofline.h"
#include "predictor/stand_ins.h"

namespace tessera {
namespace {

// Judgements, in log time: kinds that take the bandwidth of a class they resemble, and inputs
// beyond the training data, per doubling.
constexpr double kUnmeasuredKind = 0.2;
constexpr double kPerDoublingBeyond = 0.1;

bool was_measured(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
    case KernelKind::batched_gemm:
    case KernelKind::elementwise:
    case KernelKind::softmax:
    case KernelKind::layer_norm:
    case KernelKind::convolution:
      return true;
    default:
      return false;
  }
}

double launch_floor(const LaunchFloors& floors, KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return floors.linear;
    case KernelKind::batched_gemm:
      return floors.batched;
    case KernelKind::convolution:
      return floors.convolution;
    case KernelKind::softmax:
      return floors.softmax;
    case KernelKind::layer_norm:
      return floors.layer_norm;
    default:
      return floors.elementwise;
  }
}

/// Fills in what was not measured of convolutions, by rule.
void complete_convolution(const std::optional<ConvolutionWeights>& weights, GpuEffect& effect) {
  if (!weights) {
    effect.reason += "; convolutions as their implicit product (none was timed)";
    effect.floors.convolution = effect.floors.batched;
    return;
  }
  if (effect.convolution_slowdown) return;
  effect.convolution_slowdown = effect.gemm_slowdown + weights->shift;
  effect.floors.convolution = weights->floor_seconds;
  effect.reason +=
      "; convolutions from linear layers, by the difference that other GPUs show (none was timed)";
}

}  // namespace

TesseraPredictor::TesseraPredictor(const GpuSpec& gpu, const PredictorWeights& weights)
    : traits_(gpu_traits(gpu)),
      effect_(effect_in_use(gpu, weights)),
      range_(weights.range),
      spreads_(effect_.provenance == EffectProvenance::rule ? weights.spreads.by_rule
                                                            : weights.spreads.measured),
      linear_(weights.gemm, traits_, effect_.gemm_slowdown, effect_.sustained_flops),
      transposed_linear_(
          weights.gemm, traits_,
          effect_.gemm_slowdown + transposed_shift(traits_, effect_, weights.gemm, weights.batched),
          effect_.sustained_flops),
      batched_(weights.batched, traits_, effect_.batched_slowdown, effect_.sustained_flops),
      memory_(weights.memory, traits_, effect_.bandwidth_slowdown),
      convolution_(weights.convolution),
      linear_launch_share_(weights.gemm.shared.launch_share),
      batched_launch_share_(weights.batched.shared.launch_share),
      memory_launch_share_(weights.memory.launch_share) {
  complete_convolution(convolution_, effect_);
}

KernelPrediction TesseraPredictor::predict(const Kernel& kernel) const {
  const bool gemm = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm;
  const bool convolution = kernel.kind == KernelKind::convolution;
  KernelPrediction prediction = gemm          ? predict_gemm(kernel)
                                : convolution ? predict_convolution(kernel)
                                              : predict_memory(kernel);
  const double least = bound(kernel);
  const double busy = std::max(prediction.duration.value(), least);
  prediction.duration = Seconds(busy + kQueuedFloor);
  prediction.utilization = least / prediction.duration.value();
  prediction.extrapolated = range_.beyond(kernel);
  prediction.spread = spread_of(kernel, prediction.extrapolated);
  return prediction;
}

KernelPrediction TesseraPredictor::predict_gemm(const Kernel& kernel) const {
  const GemmShape shape = gemm_shape(kernel);
  if (kernel.kind == KernelKind::batched_gemm) return batched_.predict(shape);
  return shape.strided ? linear_.predict(shape) : transposed_linear_.predict(shape);
}

KernelPrediction TesseraPredictor::predict_convolution(const Kernel& kernel) const {
  if (!convolution_) return predict_gemm(implicit_product(kernel));
  const ConvolutionShape shape = convolution_shape(kernel);
  const ConvolutionParameters<double>& p = convolution_->shared;
  const ConvolutionGpu<double> gpu{traits_, *effect_.convolution_slowdown, effect_.sustained_flops};
  const ConvolutionTerms<double> terms = fastest_algorithm(shape, gpu, p);
  return {.duration = Seconds(convolution_seconds(shape, gpu, p)),
          .compute_time = Seconds(terms.compute),
          .memory_time = Seconds(terms.memory + terms.other)};
}

KernelPrediction TesseraPredictor::predict_memory(const Kernel& kernel) const {
  const MemoryShape shape = memory_shape(kernel);
  if (shape.bytes <= 0) return {};
  const double seconds = memory_traits(kernel.kind).factor * memory_.seconds(shape);
  return {.duration = Seconds(seconds),
          .compute_time = Seconds(kernel.flops.value() / traits_.flops),
          .memory_time = Seconds(seconds)};
}

LogSpread TesseraPredictor::spread_of(const Kernel& kernel,
                                      const Extrapolation& extrapolated) const {
  LogSpread spread = spreads_[static_cast<std::size_t>(spread_class(kernel.kind))];
  if (!was_measured(kernel.kind)) spread.shape = std::hypot(spread.shape, kUnmeasuredKind);
  if (extrapolated)
    spread.shape = std::hypot(spread.shape, kPerDoublingBeyond * std::log2(extrapolated.factor));
  return spread;
}

Seconds TesseraPredictor::isolated_launch_overhead(const Kernel& kernel) const {
  const double queued = duration(kernel).value();
  const double floor = launch_floor(effect_.floors, kernel.kind);
  return Seconds(isolated_seconds(queued - kQueuedFloor, floor, launch_share(kernel.kind)) -
                 queued);
}

double TesseraPredictor::bound(const Kernel& kernel) const {
  if (kernel.kind != KernelKind::convolution || !convolution_)
    return roofline_seconds(kernel, traits_);
  return convolution_bound_seconds(convolution_shape(kernel), traits_);
}

double TesseraPredictor::launch_share(KernelKind kind) const {
  if (kind == KernelKind::gemm) return linear_launch_share_;
  if (kind == KernelKind::batched_gemm) return batched_launch_share_;
  if (kind == KernelKind::convolution)
    return convolution_ ? convolution_->shared.launch_share : batched_launch_share_;
  return memory_launch_share_[static_cast<std::size_t>(memory_traits(kind).memory_class)];
}

}  // namespace tessera
