#include "predictor/tessera_predictor.h"

#include <algorithm>
#include <cmath>

#include "predictor/gpu_overlay.h"
#include "predictor/launch_floor.h"
#include "predictor/roofline.h"

namespace tessera {
namespace {

// A kernel that follows another on a stream starts and drains in about 2 us: the floor of GEMMs
// replayed from a graph is 2.5 us (measurements/kernels/README.md, tensor_core.csv).
constexpr double kQueuedFloor = 2e-6;

double launch_floor(const LaunchFloors& floors, KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return floors.linear;
    case KernelKind::batched_gemm:
      return floors.batched;
    case KernelKind::softmax:
      return floors.softmax;
    case KernelKind::layer_norm:
      return floors.layer_norm;
    default:
      return floors.elementwise;
  }
}

/// Fastest tile without split: what the library would most likely launch.
std::size_t likely_tile(const GemmShape& shape, const GpuTraits& gpu, const GemmWeights& weights) {
  const auto seconds = [&](std::size_t tile) {
    return tile_seconds(shape, gpu, weights.shared, weights.menu(gpu), tile, 1);
  };
  std::size_t best = 0;
  for (std::size_t tile = 1; tile < kGemmTiles.size(); ++tile)
    if (seconds(tile) < seconds(best)) best = tile;
  return best;
}

double compute_seconds(const GemmShape& shape, const GpuTraits& gpu, const GemmWeights& weights,
                       double slowdown) {
  return std::exp(slowdown) * gemm_compute_seconds(shape, gpu, weights.shared, weights.menu(gpu));
}

/// A linear layer in NN or NT order was never timed. It runs the library's heuristics of linear
/// layers on the memory order of batched products, so it takes half of the log difference between
/// the two at a large size.
double transposed_shift(const GpuTraits& traits, const GpuEffect& effect, const GemmWeights& gemm,
                        const GemmWeights& batched) {
  constexpr double kSize = 4096;
  const GemmShape unstrided{.m = kSize, .n = kSize, .k = kSize};
  GemmShape strided = unstrided;
  strided.strided = true;
  const double tn = compute_seconds(strided, traits, gemm, effect.gemm_slowdown);
  const double nn = compute_seconds(unstrided, traits, batched, effect.batched_slowdown);
  const double tn_without_rows = compute_seconds(unstrided, traits, gemm, effect.gemm_slowdown);
  return 0.5 * std::log(nn / tn) + std::log(tn / tn_without_rows);
}

}  // namespace

TesseraPredictor::TesseraPredictor(const GpuSpec& gpu, const PredictorWeights& weights)
    : traits_(gpu_traits(gpu)),
      effect_(effect_in_use(gpu, weights)),
      gemm_(weights.gemm),
      batched_(weights.batched),
      memory_(weights.memory),
      range_(weights.range),
      transposed_shift_(transposed_shift(traits_, effect_, gemm_, batched_)) {}

KernelPrediction TesseraPredictor::predict(const Kernel& kernel) const {
  const bool gemm = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm;
  KernelPrediction prediction = gemm ? predict_gemm(kernel) : predict_memory(kernel);
  const double bound = roofline_seconds(kernel, traits_);
  const double busy = std::max(prediction.duration.value(), bound);
  prediction.duration = Seconds(busy + kQueuedFloor);
  prediction.utilization = bound / prediction.duration.value();
  prediction.extrapolated = !range_.covers(kernel);
  return prediction;
}

KernelPrediction TesseraPredictor::predict_gemm(const Kernel& kernel) const {
  const GemmShape shape = gemm_shape(kernel);
  const bool batched = kernel.kind == KernelKind::batched_gemm;
  const GemmWeights& weights = batched ? batched_ : gemm_;
  const double transposed = !batched && !shape.strided ? transposed_shift_ : 0;
  const double slowdown = batched ? effect_.batched_slowdown : effect_.gemm_slowdown + transposed;
  const double compute = limited_by_power(shape, compute_seconds(shape, traits_, weights, slowdown),
                                          effect_.sustained_flops);
  const double memory = gemm_memory_seconds(shape, traits_, weights.shared);
  const std::size_t tile = likely_tile(shape, traits_, weights);
  return {.duration = Seconds(smooth_max(compute, memory, weights.shared.norm)),
          .compute_time = Seconds(compute),
          .memory_time = Seconds(memory),
          .tile_m = kGemmTiles[tile].m,
          .tile_n = kGemmTiles[tile].n,
          .waves = wave_count(shape, kGemmTiles[tile], 1, traits_.sms)};
}

KernelPrediction TesseraPredictor::predict_memory(const Kernel& kernel) const {
  const MemoryShape shape = memory_shape(kernel);
  if (shape.bytes <= 0) return {};
  const BandwidthSlowdown<double> slowdown{
      effect_.bandwidth_slowdown[static_cast<std::size_t>(shape.memory_class)],
      effect_.bandwidth_slowdown[static_cast<std::size_t>(MemoryClass::elementwise)]};
  const double seconds =
      memory_traits(kernel.kind).factor * memory_seconds(shape, traits_, memory_, slowdown);
  return {.duration = Seconds(seconds),
          .compute_time = Seconds(kernel.flops.value() / traits_.flops),
          .memory_time = Seconds(seconds)};
}

Seconds TesseraPredictor::isolated_launch_overhead(const Kernel& kernel) const {
  const double queued = duration(kernel).value();
  const double floor = launch_floor(effect_.floors, kernel.kind);
  return Seconds(isolated_seconds(queued - kQueuedFloor, floor, launch_share(kernel.kind)) -
                 queued);
}

double TesseraPredictor::launch_share(KernelKind kind) const {
  if (kind == KernelKind::gemm) return gemm_.shared.launch_share;
  if (kind == KernelKind::batched_gemm) return batched_.shared.launch_share;
  return memory_.launch_share[static_cast<std::size_t>(memory_traits(kind).memory_class)];
}

}  // namespace tessera
