#include "predictor/tensor/tensor_gemm_predictor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "hw/units/input_error.h"
#include "predictor/gpu/sm_rate.h"
#include "predictor/held_in_l2.h"
#include "predictor/judged_spreads.h"
#include "predictor/tensor/operand_alignment.h"

namespace tessera {
namespace {

constexpr double kLong = 50e-6;  // [s]; shorter kernels have a spread of their own

/// Log slowdown of a product that adds to a buffer wider than its operands, as Megatron's weight
/// gradients do: 5 to 7 % longer than the forward order on A100, 7 to 8 % on B200
/// (measurements/kernels_2026/simumax_gemm.csv, medians below and above 1 ms).
constexpr double kWideSum = 0.06;

/// Share of the peak for operands whose contraction does not lie side by side: Hopper's own
/// instructions (wgmma) read such ones in 16 bit alone (PTX ISA, the transposing immediates), so
/// libraries run tf32 ones by mma.sync (sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n in profiles;
/// recalled).
double share_of_other_orders(const GpuSpec& gpu, Precision precision) {
  const bool turned = gpu.architecture == Architecture::hopper && precision == Precision::tf32;
  return turned ? kHopperByMma : 1;
}

/// A product of two matrices in another order than the forward one. Convolutions have theirs.
bool is_other_order(const Kernel& kernel) {
  return kernel.layout != GemmLayout::tn && kernel.convolution.window == 0;
}

/// A weight gradient that is added to a buffer of wider numbers.
bool sums_wide(const Kernel& kernel) {
  if (kernel.layout != GemmLayout::nt) return false;
  const std::int64_t width = element_bytes(kernel.precision);
  const Bytes operands(width * kernel.batch * kernel.k * (kernel.m + kernel.n));
  const Bytes as_operands(width * kernel.batch * kernel.m * kernel.n);
  return kernel.bytes_written > as_operands && kernel.bytes_read > operands;
}

TensorStackEffect<double> for_kernel(const Kernel& kernel, TensorStackEffect<double> stack) {
  if (sums_wide(kernel)) stack.compute += kWideSum;
  return stack;
}

TensorTraits at_full_rate(TensorTraits traits, double held) {
  traits.flops /= held;
  return traits;
}

/// The largest group as a product of its own. Its share of the traffic, as its arithmetic.
TensorShape longest_group(const Kernel& kernel, TensorShape shape) {
  const auto largest = static_cast<double>(std::ranges::max(kernel.group_sizes));
  const bool contraction = kernel.layout == GemmLayout::nt;
  const auto total = static_cast<double>(contraction ? kernel.k : kernel.m);
  const double share = total > 0 ? largest / total : 0;
  const double elements = shape.k * (contraction ? shape.batch : 1);
  shape.bytes *= share;
  shape.groups = {};
  shape.batch = 1;
  (contraction ? shape.k : shape.m) = contraction ? elements * share : largest;
  return shape;
}

Extrapolation beyond(const Kernel& kernel, const GemmRange& range) {
  Kernel single = kernel;  // a batch is no size: its blocks only add up
  single.kind = KernelKind::gemm;
  single.batch = 1;
  if (!kernel.group_sizes.empty()) {
    std::int64_t& size = kernel.layout == GemmLayout::nt ? single.k : single.m;
    size = std::ranges::max(kernel.group_sizes);
  }
  return TrainingRange{.linear = range}.beyond(single);
}

}  // namespace

TensorTraits TensorGemmPredictor::traits_for(const TensorShape& shape) const {
  const bool held = warm_sets_ > 0 && warm_sets_ * shape.bytes <= kHeldShare * l2_;
  return held && warm_traits_.bandwidth > traits_.bandwidth ? warm_traits_ : traits_;
}

TensorGemmPredictor::TensorGemmPredictor(const GpuSpec& gpu, Precision precision,
                                         const TensorWeights& weights, std::string_view stack,
                                         Load load)
    : gpu_(gpu.id),
      precision_(precision),
      held_(held_share(gpu, precision)),
      other_orders_(share_of_other_orders(gpu, precision)),
      traits_(at_full_rate(tensor_traits(gpu, precision), held_)),
      warm_traits_(traits_),
      l2_(static_cast<double>(gpu.l2.value())),
      effect_(tensor_effect(gpu, precision, weights, stack)),
      shared_(weights.shared),
      range_(weights.range) {
  shared_.split_seconds *= effect_.fixed_costs;
  warm_traits_.bandwidth = kL2PerClock * traits_.sms * gpu.boost_clock.value();
  warm_traits_.in_flight = warm_traits_.bandwidth * kMemoryLatency;
  if (load == Load::sustained) put_under_load(effect_);
}

bool TensorGemmPredictor::covers(const Kernel& kernel) const {
  return kernel.precision == precision_ &&
         (kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm ||
          kernel.kind == KernelKind::grouped_gemm);
}

TensorShape TensorGemmPredictor::shape_of(const Kernel& kernel) const {
  TensorShape shape = tensor_shape(kernel);
  shape.whole |= whole_;
  return shape;
}

double TensorGemmPredictor::reached_share(const Kernel& kernel) const {
  return is_other_order(kernel) ? std::min(held_, other_orders_) : held_;
}

double TensorGemmPredictor::seconds(const Kernel& kernel, const TensorShape& shape) const {
  const TensorStackEffect<double> stack = for_kernel(kernel, effect_.stack);
  const TensorTraits traits = traits_for(shape);
  const double reached = reached_share(kernel);
  const auto timed = [&](const TensorShape& part) {
    const double free = tensor_gemm_seconds(part, traits, shared_, effect_.gpu, stack);
    if (reached == 1) return free;
    return smooth_max(free, part.flops() / (reached * traits.flops), kTensorCapSharpness);
  };
  const double all = timed(shape);
  return kernel.group_sizes.empty() ? all : std::max(all, timed(longest_group(kernel, shape)));
}

KernelPrediction TensorGemmPredictor::predict(const Kernel& kernel) const {
  if (!covers(kernel))
    throw std::invalid_argument("TensorGemmPredictor covers products of its own precision alone");
  const TensorShape shape = shape_of(kernel);
  if (!(shape.flops() > 0)) return {};
  const TensorTraits traits = traits_for(shape);
  const double bound =
      std::max(shape.flops() / (held_ * traits.flops), shape.bytes / traits.bandwidth);
  const double busy = std::max(bound, seconds(kernel, shape));
  const TensorTileChoice best =
      best_tensor_tile(shape, traits, shared_, effect_.stack.quantisation);
  KernelPrediction prediction{
      .duration = Seconds(busy),
      .compute_time = Seconds(std::max(shape.flops() / (reached_share(kernel) * traits.flops),
                                       tensor_compute_seconds(shape, traits, shared_, effect_.gpu,
                                                              for_kernel(kernel, effect_.stack)))),
      .memory_time =
          Seconds(tensor_memory_seconds(shape, traits, shared_, effect_.gpu, effect_.stack)),
      .tile_m = kTensorTiles[best.tile].m,
      .tile_n = kTensorTiles[best.tile].n,
      .waves = best.waves,
      .utilization = bound / busy,
      .extrapolated = beyond(kernel, range_)};
  prediction.spread =
      spread_of(kernel, busy + effect_.stack.launch_seconds, prediction.extrapolated);
  return prediction;
}

LogSpread TensorGemmPredictor::spread_of(const Kernel& kernel, double timed_seconds,
                                         const Extrapolation& beyond) const {
  const double own = timed_seconds < kLong ? effect_.short_spread : effect_.long_spread;
  LogSpread spread{.gpu = effect_.spread, .shape = own};
  if (kernel.layout != GemmLayout::tn) spread.gpu = std::hypot(spread.gpu, judged::kOtherLayout);
  if (kernel.batch > 1) spread.gpu = std::hypot(spread.gpu, judged::kBatched);
  if (kernel.kind == KernelKind::grouped_gemm)
    spread.gpu = std::hypot(spread.gpu, judged::kUnequalGroups);
  if (rows_off_16_bytes(kernel)) spread.shape = std::hypot(spread.shape, judged::kMisaligned);
  if (beyond)
    spread.shape = std::hypot(spread.shape, judged::kPerDoublingBeyond * std::log2(beyond.factor));
  return spread;
}

std::string TensorGemmPredictor::reason(const Kernel& kernel) const {
  std::string text = effect_.reason;
  if (held_ < 1) text += "; held to a part of what its SMs could do, which they then reach";
  if (sums_wide(kernel))
    text += "; 6 % more for the sum in wider numbers, as on A100 PCIe and B200";
  else if (is_other_order(kernel) && other_orders_ < 1)
    text +=
        "; Hopper's own tensor instructions do not read this memory order in tf32: at most 62.9 % "
        "of the peak, by Ampere's";
  else if (kernel.layout != GemmLayout::tn)
    text += "; this memory order (a gradient's) was never timed, as the forward order";
  if (kernel.batch > 1)
    text += "; batched products were never timed, as one product with as many tiles";
  if (kernel.kind == KernelKind::grouped_gemm)
    text += "; grouped products were never timed, as one product with as many tiles";
  if (rows_off_16_bytes(kernel)) text += "; rows off 16 bytes were never timed, no loss assumed";
  if (const Extrapolation far = beyond(kernel, range_))
    text += "; " + std::string(far.input) + " lies beyond what was timed";
  return text;
}

std::vector<std::string> TensorGemmPredictor::notes(const Kernel& kernel) const {
  const std::string products = std::string(name_of(precision_)) + " products";
  std::vector<std::string> notes;
  if (!effect_.never_timed.empty())
    notes.push_back(products + " on " + gpu_ + ": never measured; " + effect_.never_timed);
  const auto never = [&](const std::string& which, const std::string& instead) {
    notes.push_back(products + ", " + which + ": never measured; " + instead);
  };
  if (kernel.layout == GemmLayout::nn) never("data gradients (order nn)", "as the forward order");
  if (kernel.layout == GemmLayout::nt && !sums_wide(kernel))
    never("weight gradients (order nt)", "as the forward order");
  if (sums_wide(kernel))
    never("weight gradients into wider sums",
          "6 % more than the forward order, as on A100 PCIe and B200");
  if (kernel.batch > 1) never("batched", "as one product with as many tiles");
  if (kernel.kind == KernelKind::grouped_gemm)
    never("grouped", "as one product with as many tiles");
  if (rows_off_16_bytes(kernel)) never("rows off 16 bytes", "no loss assumed, so likely slower");
  return notes;
}

}  // namespace tessera
