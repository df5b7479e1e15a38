#include "predictor/kernel_story.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "predictor/fp32/issue_limit.h"
#include "predictor/fp32/launch_floor.h"
#include "predictor/gpu/gpu_overlay.h"
#include "predictor/roofline.h"
#include "predictor/stand_ins.h"
#include "predictor/tensor/tensor_story.h"
#include "predictor/tessera_predictor.h"

namespace tessera {
namespace {

void tell_gemm(const Kernel& kernel, const PredictorWeights& weights, KernelStory& story) {
  const GemmShape shape = gemm_shape(kernel);
  const bool linear = kernel.kind == KernelKind::gemm;
  const GemmWeights& gemm = linear ? weights.gemm : weights.batched;
  GemmSlowdown slowdown{.gpu = linear ? story.effect.gemm_slowdown : story.effect.batched_slowdown,
                        .sustained_flops = story.effect.sustained_flops};
  if (linear && !shape.strided)
    slowdown.layout = transposed_shift(story.traits, story.effect, weights.gemm, weights.batched);
  story.product = gemm_story(shape, story.traits, gemm, slowdown);
  const double memory = gemm_memory_seconds(shape, story.traits, gemm.shared);
  story.joined = Seconds(smooth_max(story.product->compute_seconds(), memory, gemm.shared.norm));
}

void tell_convolution(const Kernel& kernel, const PredictorWeights& weights, KernelStory& story) {
  if (!weights.convolution) return tell_gemm(implicit_product(kernel), weights, story);
  const ConvolutionShape shape = convolution_shape(kernel);
  const ConvolutionGpu<double> gpu{story.traits, *story.effect.convolution_slowdown,
                                   story.effect.sustained_flops};
  story.convolution = convolution_story(shape, gpu, weights.convolution->shared);
  story.product = story.convolution->product;
  story.joined = Seconds(story.convolution->seconds);
  story.bound = Seconds(convolution_bound_seconds(shape, story.traits));
}

/// Bytes that the model charges for, with rows and missed reuse as traffic.
double charged_bytes(const MemoryShape& s, const GpuTraits& gpu,
                     const MemoryParameters<double>& p) {
  double bytes = s.bytes;
  if (s.memory_class == MemoryClass::softmax) bytes += p.softmax_row * s.rows;
  if (s.memory_class == MemoryClass::layer_norm) bytes += p.layer_norm_row * s.rows;
  if (s.refetched > 0) bytes += l2_miss(s.reuse_footprint, gpu, p) * s.refetched;
  return bytes;
}

void tell_traffic(const Kernel& kernel, const PredictorWeights& weights, KernelStory& story) {
  const MemoryShape shape = memory_shape(kernel);
  if (shape.bytes <= 0) return;
  const MemoryParameters<double>& p = weights.memory;
  const auto& slowdown = story.effect.bandwidth_slowdown;
  const bool by_rule = story.effect.provenance == EffectProvenance::rule;
  const double own = by_rule ? slowdown_of_passes(shape, story.traits, p, slowdown)
                             : slowdown[static_cast<std::size_t>(shape.memory_class)];
  const BandwidthSlowdown<double> losses{own, slowdown[0]};
  const double factor = memory_traits(kernel.kind).factor;
  const double moved = factor * memory_seconds(shape, story.traits, p, losses);
  const double seconds = with_issue_limit(moved, kernel, story.traits);
  story.traffic = {.bytes = shape.bytes,
                   .charged_bytes = charged_bytes(shape, story.traits, p),
                   .l2_ratio = shape.bytes / story.traits.l2,
                   .l2_miss = l2_miss(shape.bytes, story.traits, p),
                   .hit_speedup = p.l2_speedup,
                   .reached_share = std::exp(-losses.own),
                   .kind_factor = factor,
                   .issue_seconds = issue_seconds(kernel, story.traits),
                   .seconds = seconds};
  story.joined = Seconds(seconds);
}

/// Empty where the L2 does not hold the operands.
std::optional<Seconds> warm_duration(const Kernel& product, TensorGemmPredictor products) {
  const Seconds cold = products.duration(product);
  products.keep_warm(1);
  const Seconds warm = products.duration(product);
  if (!(warm < cold)) return std::nullopt;
  return warm + products.launch_seconds();
}

/// Products on tensor cores and attention: the bound follows from the utilisation.
void tell_tensor_cores(const TensorCorePredictor& model, KernelStory& story) {
  const Kernel& kernel = story.kernel;
  const KernelPrediction prediction = model.predict(kernel);
  story.on_tensor_cores = true;
  story.basis.effect = model.reason(kernel);
  story.bound = prediction.utilization * prediction.duration;
  if (kernel.kind == KernelKind::attention) {
    const AttentionPredictor& attention = model.attention(kernel);
    story.attention = {attention.parts(kernel.attention), attention.provenance(kernel.attention)};
    const AttentionParts& parts = story.attention->parts;
    story.queue_floor = Seconds(parts.factor * parts.forward.launch);
    story.basis.mode = attention.measured(kernel.attention) ? PredictionMode::calibrated
                                                            : PredictionMode::zero_shot;
  } else {
    const TensorGemmPredictor& products = model.products(kernel.precision);
    story.product = tensor_product_story(TensorCorePredictor::product_of(kernel), products);
    story.queue_floor = products.launch_seconds();
    story.warm_duration = warm_duration(TensorCorePredictor::product_of(kernel), products);
    story.basis.mode =
        products.effect().measured ? PredictionMode::calibrated : PredictionMode::zero_shot;
  }
  const bool measured = story.basis.mode == PredictionMode::calibrated;
  story.effect.provenance = measured ? EffectProvenance::measured : EffectProvenance::rule;
  story.joined = prediction.duration - story.queue_floor;
}

KernelLimit limit_of(const KernelStory& story) {
  if (std::max(story.joined, story.bound) < story.queue_floor) return KernelLimit::launch_floor;
  if (story.prediction.memory_time > story.prediction.compute_time) return KernelLimit::memory;
  const bool limited = story.product && story.product->at_power_limit &&
                       *story.product->at_power_limit > story.product->unlimited();
  return limited ? KernelLimit::power : KernelLimit::compute;
}

}  // namespace

std::string_view name_of(KernelLimit limit) {
  switch (limit) {
    case KernelLimit::compute:
      return "compute";
    case KernelLimit::power:
      return "power";
    case KernelLimit::memory:
      return "memory";
    case KernelLimit::launch_floor:
      break;
  }
  return "launch_floor";
}

std::string_view name_of(EffectProvenance provenance) {
  switch (provenance) {
    case EffectProvenance::measured:
      return "measured";
    case EffectProvenance::twin_die:
      return "twin_die";
    case EffectProvenance::calibrated:
      return "calibrated";
    case EffectProvenance::calibrated_steps:
      return "calibrated_steps";
    case EffectProvenance::rule:
      break;
  }
  return "rule";
}

KernelStory kernel_story(const Kernel& kernel, const GpuSpec& gpu,
                         const PredictorWeights& weights) {
  const TesseraPredictor predictor(gpu, weights);
  KernelStory story{.kernel = kernel,
                    .traits = gpu_traits(gpu),
                    .effect = predictor.effect(),
                    .basis = prediction_basis(PredictorForm::tessera, gpu, weights)};
  story.basis.effect = story.effect.reason;
  story.bound = Seconds(roofline_seconds(kernel, story.traits));
  story.queue_floor = Seconds(kQueuedFloor);
  story.peak_flops = story.traits.flops;
  if (TensorCorePredictor::covers(kernel)) {
    story.peak_flops = kernel.kind == KernelKind::attention ? gpu.peak(Precision::bf16).value()
                                                            : gpu.peak(kernel.precision).value();
    tell_tensor_cores(predictor.tensor_cores(), story);
  } else if (kernel.kind == KernelKind::grouped_gemm) {
    tell_gemm(equal_groups(kernel), weights, story);
    story.bound = Seconds(roofline_seconds(equal_groups(kernel), story.traits));
  } else if (story.has_layout())
    tell_gemm(kernel, weights, story);
  else if (kernel.kind == KernelKind::convolution)
    tell_convolution(kernel, weights, story);
  else
    tell_traffic(kernel, weights, story);
  story.prediction = predictor.predict(kernel);
  story.notes = predictor.notes(kernel);
  std::ranges::move(notes_on_sheet(gpu, kernel), std::back_inserter(story.notes));
  story.interval = interval_80(story.prediction.duration, story.prediction.spread);
  story.launch_gap = predictor.isolated_launch_overhead(kernel);
  story.limit = limit_of(story);
  if (story.traffic)
    story.traffic->achieved_share =
        story.traffic->bytes / story.prediction.duration.value() / story.traits.bandwidth;
  return story;
}

}  // namespace tessera
