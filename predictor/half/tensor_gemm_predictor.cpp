#include "predictor/half/tensor_gemm_predictor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

// Judgements, in log time. Transposed 16-bit operands load at full rate, but nothing here shows it.
constexpr double kOtherLayout = 0.05;
constexpr double kBatched = 0.10;            // only single products were timed
constexpr double kMisaligned = 0.30;         // only sizes that are multiples of 32 were timed
constexpr double kPerDoublingBeyond = 0.10;  // as of the FP32 model
constexpr double kLong = 50e-6;              // [s]; shorter kernels have a spread of their own

/// Whether rows of 16-bit operands or of the result start off 16 bytes, which rules the fast
/// kernels out.
bool misaligned(const Kernel& kernel) {
  const auto off = [](std::int64_t contiguous) { return contiguous % 8 != 0; };
  switch (kernel.layout) {
    case GemmLayout::tn:
      return off(kernel.k) || off(kernel.n);
    case GemmLayout::nn:
      return off(kernel.k) || off(kernel.n);
    case GemmLayout::nt:
      return off(kernel.m) || off(kernel.n);
  }
  return false;
}

Extrapolation beyond(const Kernel& kernel, const GemmRange& range) {
  Kernel single = kernel;  // a batch is no size: its blocks only add up
  single.kind = KernelKind::gemm;
  single.batch = 1;
  return TrainingRange{.linear = range}.beyond(single);
}

}  // namespace

TensorGemmPredictor::TensorGemmPredictor(const GpuSpec& gpu, Precision precision,
                                         const TensorWeights& weights, std::string_view stack)
    : precision_(precision),
      traits_(tensor_traits(gpu, precision)),
      effect_(tensor_effect(gpu, precision, weights, stack)),
      shared_(weights.shared),
      range_(weights.range) {}

bool TensorGemmPredictor::covers(const Kernel& kernel) const {
  return kernel.precision == precision_ &&
         (kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm);
}

KernelPrediction TensorGemmPredictor::predict(const Kernel& kernel) const {
  if (!covers(kernel))
    throw std::invalid_argument("TensorGemmPredictor covers products of its own precision alone");
  const TensorShape shape = tensor_shape(kernel);
  if (!(shape.flops() > 0)) return {};
  const double bound = std::max(shape.flops() / traits_.flops, shape.bytes / traits_.bandwidth);
  const double seconds =
      std::max(bound, tensor_gemm_seconds(shape, traits_, shared_, effect_.gpu, effect_.stack));
  const TensorTileChoice best =
      best_tensor_tile(shape, traits_, shared_, effect_.stack.quantisation);
  KernelPrediction prediction{
      .duration = Seconds(seconds),
      .compute_time =
          Seconds(tensor_compute_seconds(shape, traits_, shared_, effect_.gpu, effect_.stack)),
      .memory_time =
          Seconds(tensor_memory_seconds(shape, traits_, shared_, effect_.gpu, effect_.stack)),
      .tile_m = kTensorTiles[best.tile].m,
      .tile_n = kTensorTiles[best.tile].n,
      .waves = best.waves,
      .utilization = bound / seconds,
      .extrapolated = beyond(kernel, range_)};
  prediction.spread =
      spread_of(kernel, seconds + effect_.stack.launch_seconds, prediction.extrapolated);
  return prediction;
}

LogSpread TensorGemmPredictor::spread_of(const Kernel& kernel, double timed_seconds,
                                         const Extrapolation& beyond) const {
  const double own = timed_seconds < kLong ? effect_.short_spread : effect_.long_spread;
  LogSpread spread{.gpu = effect_.spread, .shape = own};
  if (kernel.layout != GemmLayout::tn) spread.gpu = std::hypot(spread.gpu, kOtherLayout);
  if (kernel.batch > 1) spread.gpu = std::hypot(spread.gpu, kBatched);
  if (misaligned(kernel)) spread.shape = std::hypot(spread.shape, kMisaligned);
  if (beyond)
    spread.shape = std::hypot(spread.shape, kPerDoublingBeyond * std::log2(beyond.factor));
  return spread;
}

std::string TensorGemmPredictor::reason(const Kernel& kernel) const {
  std::string text = effect_.reason;
  if (kernel.layout != GemmLayout::tn)
    text += "; this memory order (a gradient's) was never timed, as the forward order";
  if (kernel.batch > 1)
    text += "; batched products were never timed, as one product with as many tiles";
  if (misaligned(kernel)) text += "; rows off 16 bytes were never timed, no loss assumed";
  if (const Extrapolation far = beyond(kernel, range_))
    text += "; " + std::string(far.input) + " lies beyond what was timed";
  return text;
}

}  // namespace tessera
