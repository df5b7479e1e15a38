#include "predictor/fp32/cuda_core_predictor.h"

#include <algorithm>
#include <cmath>

#include "predictor/fp32/issue_limit.h"
#include "predictor/fp32/launch_floor.h"
#include "predictor/gpu/gpu_overlay.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/judged_spreads.h"
#include "predictor/roofline.h"
#include "predictor/stand_ins.h"

namespace tessera {
namespace {

constexpr double kShort = 50e-6;  // [s]
constexpr std::string_view kMeasuredShort = "checked on adds and GELUs of A100-SXM4-80GB and A40";

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

bool short_format(const Kernel& kernel) {
  return kernel.precision == Precision::bf16 || kernel.precision == Precision::fp16 ||
         kernel.precision == Precision::fp8 || kernel.precision == Precision::fp4;
}

double launch_floor(const LaunchFloors& floors, KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return floors.linear;
    case KernelKind::batched_gemm:
    case KernelKind::grouped_gemm:
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

/// What was not timed of a convolution; one line for all sizes of an input.
std::string convolution_note(const Extrapolation& beyond) {
  if (beyond.input == "pass")
    return "fp32 convolution gradients: never measured; as forward passes";
  if (beyond.input == "groups")
    return "fp32 convolutions in groups: never measured; as a batch of implicit products, "
           "gradients "
           "as forward passes";
  if (beyond.input == "convolution") return "fp32 convolutions: never measured; as their products";
  return "fp32 convolutions beyond the measured ones in " + std::string(beyond.input) +
         ": extrapolated";
}

}  // namespace

CudaCorePredictor::CudaCorePredictor(const GpuSpec& gpu, const PredictorWeights& weights)
    : traits_(gpu_traits(gpu)),
      products_(product_traits(gpu)),
      effect_(effect_in_use(gpu, weights)),
      range_(weights.range),
      spreads_(effect_.provenance == EffectProvenance::rule ? weights.spreads.by_rule
                                                            : weights.spreads.measured),
      linear_(weights.gemm, products_, effect_.gemm_slowdown, effect_.sustained_flops),
      transposed_linear_(weights.gemm, products_,
                         effect_.gemm_slowdown +
                             transposed_shift(products_, effect_, weights.gemm, weights.batched),
                         effect_.sustained_flops),
      batched_(weights.batched, products_, effect_.batched_slowdown, effect_.sustained_flops),
      memory_(weights.memory, traits_, effect_.bandwidth_slowdown,
              effect_.provenance == EffectProvenance::rule),
      convolution_(weights.convolution),
      linear_launch_share_(weights.gemm.shared.launch_share),
      batched_launch_share_(weights.batched.shared.launch_share),
      memory_launch_share_(weights.memory.launch_share) {
  complete_convolution(convolution_, effect_);
}

KernelPrediction CudaCorePredictor::predict(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::grouped_gemm) {
    KernelPrediction grouped = predict(equal_groups(kernel));
    grouped.spread.shape = std::hypot(grouped.spread.shape, judged::kUnequalFp32Groups);
    return grouped;
  }
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
  prediction.spread = spread_of(kernel, prediction);
  return prediction;
}

KernelPrediction CudaCorePredictor::predict_gemm(const Kernel& kernel) const {
  const GemmShape shape = gemm_shape(kernel);
  if (kernel.kind == KernelKind::batched_gemm) return batched_.predict(shape);
  return shape.strided ? linear_.predict(shape) : transposed_linear_.predict(shape);
}

KernelPrediction CudaCorePredictor::predict_convolution(const Kernel& kernel) const {
  if (!convolution_) return predict_gemm(implicit_product(kernel));
  const ConvolutionShape shape = convolution_shape(kernel);
  const ConvolutionParameters<double>& p = convolution_->shared;
  const ConvolutionGpu<double> gpu{products_, *effect_.convolution_slowdown,
                                   effect_.sustained_flops};
  const ConvolutionTerms<double> terms = fastest_algorithm(shape, gpu, p);
  return {.duration = Seconds(convolution_seconds(shape, gpu, p)),
          .compute_time = Seconds(terms.compute),
          .memory_time = Seconds(terms.memory + terms.other)};
}

KernelPrediction CudaCorePredictor::predict_memory(const Kernel& kernel) const {
  const MemoryShape shape = memory_shape(kernel);
  if (shape.bytes <= 0) return {};
  const double moved = memory_traits(kernel.kind).factor * memory_.seconds(shape);
  const double arithmetic = kernel.flops.value() / traits_.flops;
  return {.duration = Seconds(with_issue_limit(moved, kernel, traits_)),
          .compute_time = Seconds(std::max(arithmetic, issue_seconds(kernel, traits_))),
          .memory_time = Seconds(moved)};
}

LogSpread CudaCorePredictor::spread_of(const Kernel& kernel,
                                       const KernelPrediction& prediction) const {
  LogSpread spread = spreads_[static_cast<std::size_t>(spread_class(kernel.kind))];
  if (!was_measured(kernel.kind)) spread.shape = std::hypot(spread.shape, judged::kUnmeasuredKind);
  if (prediction.extrapolated)
    spread.shape = std::hypot(
        spread.shape, judged::kPerDoublingBeyond * std::log2(prediction.extrapolated.factor));
  if (!short_format(kernel)) return spread;
  if (is_product(kernel.kind)) {
    spread.gpu = std::hypot(spread.gpu, judged::kOtherFormatProducts);
    return spread;
  }
  const bool rows = kernel.kind == KernelKind::softmax || kernel.kind == KernelKind::layer_norm;
  spread.gpu = std::hypot(
      spread.gpu,
      prediction.duration.value() < kShort ? judged::kOtherFormatShort : judged::kOtherFormat,
      rows ? judged::kOtherFormatRows : 0);
  return spread;
}

Seconds CudaCorePredictor::isolated_launch_overhead(const Kernel& kernel) const {
  const Seconds queued = duration(kernel);
  return launch_gap(kernel.kind, queued - Seconds(kQueuedFloor), queued);
}

Seconds CudaCorePredictor::launch_gap(KernelKind kind, Seconds busy, Seconds queued) const {
  const double floor = launch_floor(effect_.floors, kind);
  return Seconds(isolated_seconds(busy.value(), floor, launch_share(kind)) - queued.value());
}

Extrapolation CudaCorePredictor::convolution_beyond(const Kernel& kernel) const {
  return kernel.kind == KernelKind::convolution ? range_.beyond(kernel) : Extrapolation{};
}

std::vector<std::string> CudaCorePredictor::notes(const Kernel& kernel) const {
  std::vector<std::string> notes;
  if (kernel.kind == KernelKind::grouped_gemm)
    notes.push_back("fp32 grouped products: never measured; as a batch of equal groups");
  if (const Extrapolation beyond = convolution_beyond(kernel))
    notes.push_back(convolution_note(beyond));
  if (short_format(kernel) && is_product(kernel.kind))
    notes.push_back(std::string(name_of(kernel.precision)) +
                    " products, batched, rows off 16 bytes: never measured; on FP32 units");
  else if (short_format(kernel))
    notes.push_back("memory-bound kernels on " + std::string(name_of(kernel.precision)) +
                    " tensors: as fp32 tensors of as many bytes, or as fast as SMs start their "
                    "instructions (" +
                    std::string(kMeasuredShort) + ")");
  return notes;
}

double CudaCorePredictor::bound(const Kernel& kernel) const {
  if (kernel.kind != KernelKind::convolution || !convolution_)
    return roofline_seconds(kernel, is_product(kernel.kind) ? products_ : traits_);
  return convolution_bound_seconds(convolution_shape(kernel), products_);
}

double CudaCorePredictor::launch_share(KernelKind kind) const {
  if (kind == KernelKind::gemm) return linear_launch_share_;
  if (kind == KernelKind::batched_gemm || kind == KernelKind::grouped_gemm)
    return batched_launch_share_;
  if (kind == KernelKind::convolution)
    return convolution_ ? convolution_->shared.launch_share : batched_launch_share_;
  return memory_launch_share_[static_cast<std::size_t>(memory_traits(kind).memory_class)];
}

}  // namespace tessera
