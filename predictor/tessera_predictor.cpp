#include "predictor/tessera_predictor.h"

#include <algorithm>
#include <cmath>

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
std::size_t likely_tile(const GemmShape& shape, const GpuTraits& gpu,
                        const GemmParameters<double>& parameters) {
  std::size_t best = 0;
  double best_seconds = tile_seconds(shape, gpu, parameters, 0, 1);
  for (std::size_t tile = 1; tile < kGemmTiles.size(); ++tile) {
    const double seconds = tile_seconds(shape, gpu, parameters, tile, 1);
    if (seconds >= best_seconds) continue;
    best = tile;
    best_seconds = seconds;
  }
  return best;
}

/// A linear layer in NN or NT order was never timed. It runs the library's heuristics of linear
/// layers on the memory order of batched products, so it takes half of the log difference between
/// the two at a large size.
double transposed_shift(const GpuTraits& traits, const GpuEffect& effect,
                        const GemmParameters<double>& gemm, const GemmParameters<double>& batched) {
  constexpr double kSize = 4096;
  const GemmShape tn{
      .m = kSize, .n = kSize, .k = kSize, .bytes = 12 * kSize * kSize, .strided = true};
  GemmShape nn = tn;
  nn.strided = false;
  const double linear = gemm_seconds(tn, traits, gemm, effect.gemm_slowdown, 0);
  const double bmm = gemm_seconds(nn, traits, batched, effect.batched_slowdown, 0);
  const double linear_without_stride = gemm_seconds(nn, traits, gemm, effect.gemm_slowdown, 0);
  return 0.5 * std::log(bmm / linear) + std::log(linear / linear_without_stride);
}

}  // namespace

TesseraPredictor::TesseraPredictor(const GpuSpec& gpu, const PredictorWeights& weights)
    : traits_(gpu_traits(gpu)),
      effect_(effect_for(gpu, weights)),
      gemm_(weights.gemm),
      batched_(weights.batched),
      memory_(weights.memory),
      transposed_shift_(transposed_shift(traits_, effect_, gemm_, batched_)) {}

KernelPrediction TesseraPredictor::predict(const Kernel& kernel) const {
  const bool gemm = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm;
  KernelPrediction prediction = gemm ? predict_gemm(kernel) : predict_memory(kernel);
  const double bound = roofline_seconds(kernel, traits_);
  const double busy = std::max(prediction.duration.value(), bound);
  prediction.duration = Seconds(busy + kQueuedFloor);
  prediction.utilization = bound / prediction.duration.value();
  return prediction;
}

KernelPrediction TesseraPredictor::predict_gemm(const Kernel& kernel) const {
  const GemmShape shape = gemm_shape(kernel);
  const bool batched = kernel.kind == KernelKind::batched_gemm;
  const auto& parameters = batched ? batched_ : gemm_;
  const double transposed = !batched && !shape.strided ? transposed_shift_ : 0;
  const double slowdown = batched ? effect_.batched_slowdown : effect_.gemm_slowdown + transposed;
  const double unlimited = std::exp(slowdown) * gemm_compute_seconds(shape, traits_, parameters);
  const double compute = limited_by_power(shape, unlimited, effect_.sustained_flops);
  const double memory = gemm_memory_seconds(shape, traits_, parameters);
  const std::size_t tile = likely_tile(shape, traits_, parameters);
  return {.duration = Seconds(smooth_max(compute, memory, parameters.norm)),
          .compute_time = Seconds(compute),
          .memory_time = Seconds(memory),
          .tile_m = kGemmTiles[tile].m,
          .tile_n = kGemmTiles[tile].n,
          .waves = wave_count(shape, kGemmTiles[tile], 1, traits_.sms)};
}

KernelPrediction TesseraPredictor::predict_memory(const Kernel& kernel) const {
  const auto bytes = static_cast<double>(kernel.bytes().value());
  if (bytes <= 0) return {};
  const MemoryTraits memory_traits_of_kind = memory_traits(kernel.kind);
  const double seconds = memory_traits_of_kind.factor * std::exp(effect_.bandwidth_slowdown) *
                         memory_seconds(memory_traits_of_kind.memory_class, bytes,
                                        static_cast<double>(kernel.rows), traits_, memory_);
  return {.duration = Seconds(seconds),
          .compute_time = Seconds(kernel.flops.value() / traits_.flops),
          .memory_time = Seconds(seconds)};
}

Seconds TesseraPredictor::isolated_launch_overhead(const Kernel& kernel) const {
  return Seconds(std::max(0.0, launch_floor(effect_.floors, kernel.kind) - kQueuedFloor));
}

}  // namespace tessera
