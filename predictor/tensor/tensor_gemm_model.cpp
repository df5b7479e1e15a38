#include "predictor/tensor/tensor_gemm_model.h"

#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/gpu/sm_rate.h"

namespace tessera {
namespace {

/// x^-kTensorTileSharpness; x a time relative to another one, so that nothing overflows.
double tensor_soft_minimum_term(double x) {
  const double x4 = x * x * x * x;
  const double x8 = x4 * x4, x16 = x8 * x8;
  static_assert(kTensorTileSharpness == 32);
  return 1 / (x16 * x16);
}

/// Seconds of one tile and split and what they consist of.
struct TensorTilePart {
  double seconds = 0;
  double per_wave = 0;  ///< of one wave
  double waves = 0;     ///< quantised
  double rounding = 0;  ///< waves that whole ones would take more
};

/// `per_k`: seconds of one wave per element of k.
TensorTilePart tensor_tile_part(const TensorShape& s, const TensorTraits& gpu,
                                const TensorParameters<double>& p, double quantisation,
                                double unsplit_waves, double per_k, int split) {
  const double waves = unsplit_waves * split;
  const double soft = std::max(waves, 1.0);
  TensorTilePart part{.per_wave = (p.prologue + s.k / split) * per_k,
                      .rounding = std::ceil(waves) - soft};
  part.waves = quantisation * part.rounding + soft;
  part.seconds = part.waves * part.per_wave;
  if (split > 1)  // partial sums of 4 bytes, one write; half of the reads find them in L2
    part.seconds += p.split_seconds + 4.0 * split * s.batch * s.m * s.n / gpu.bandwidth;
  return part;
}

/// 16-bit steps of the contraction per element.
double steps_per_element(Precision precision) {
  return static_cast<double>(element_bytes(precision)) / 2;
}

double seconds_per_k(const TensorTraits& gpu, const TensorTile& tile, double penalty) {
  return 2.0 * tile.m * tile.n * gpu.sms / gpu.flops * std::exp(penalty);
}

}  // namespace

TensorTraits tensor_traits(const GpuSpec& gpu, Precision precision) {
  require_products(gpu, precision);
  if (gpu.sm_count <= 0 || !(gpu.memory_bandwidth.value() > 0))
    throw InputError({.where = "GPU " + gpu.id,
                      .what = "states no memory bandwidth or SM count",
                      .hint = "add them to configs/hw/gpus"});
  return {.flops = usable_peak(gpu, precision).value() * steps_per_element(precision),
          .bandwidth = gpu.memory_bandwidth.value(),
          .sms = static_cast<double>(gpu.sm_count),
          .in_flight = gpu.memory_bandwidth.value() * kMemoryLatency};
}

TensorShape tensor_shape(const Kernel& kernel) {
  TensorShape shape{.batch = static_cast<double>(kernel.batch),
                    .m = static_cast<double>(kernel.m),
                    .n = static_cast<double>(kernel.n),
                    .k = static_cast<double>(kernel.k) * steps_per_element(kernel.precision),
                    .bytes = static_cast<double>(kernel.bytes().value())};
  if (kernel.kind != KernelKind::grouped_gemm) return shape;
  if (kernel.layout != GemmLayout::nt) {
    shape.groups = kernel.group_sizes;
    return shape;
  }
  const auto groups = static_cast<double>(std::max<std::size_t>(1, kernel.group_sizes.size()));
  shape.batch *= groups;
  shape.k /= groups;
  return shape;
}

TensorTileChoice tensor_tile_choice(const TensorShape& s, const TensorTraits& gpu,
                                    const TensorParameters<double>& p, double quantisation,
                                    std::size_t tile, int split) {
  const double waves = tensor_blocks(s, kTensorTiles[tile]) / gpu.sms;
  const double per_k = seconds_per_k(gpu, kTensorTiles[tile], p.penalty[tile]);
  const TensorTilePart part = tensor_tile_part(s, gpu, p, quantisation, waves, per_k, split);
  return {.tile = tile, .split = split, .waves = waves * split, .seconds = part.seconds};
}

TensorTileChoice best_tensor_tile(const TensorShape& s, const TensorTraits& gpu,
                                  const TensorParameters<double>& p, double quantisation) {
  TensorTileChoice best = tensor_tile_choice(s, gpu, p, quantisation, 0, 1);
  for (std::size_t tile = 0; tile < kTensorTiles.size(); ++tile) {
    const double unsplit = tensor_blocks(s, kTensorTiles[tile]) / gpu.sms;
    for (const int split : kTensorSplits) {
      if (!tensor_split_possible(s, unsplit, split)) break;  // nor is any larger one
      const TensorTileChoice choice = tensor_tile_choice(s, gpu, p, quantisation, tile, split);
      if (choice.seconds < best.seconds) best = choice;
    }
  }
  return best;
}

TensorTileTime soft_minimum_over_tensor_tiles(const TensorShape& s, const TensorTraits& gpu,
                                              const TensorParameters<double>& p,
                                              double quantisation, bool derivatives) {
  // Relative to the first tile, so that no power overflows. With S the sum of x^-b, the result is
  // S^(-1/b), and its derivative by an x is S^(-1/b) / S * x^-b / x.
  const double reference = tensor_tile_choice(s, gpu, p, quantisation, 0, 1).seconds;
  double sum = 0;
  TensorTileTime time;
  for (std::size_t i = 0; i < kTensorTiles.size(); ++i) {
    const double unsplit = tensor_blocks(s, kTensorTiles[i]) / gpu.sms;
    const double per_k = seconds_per_k(gpu, kTensorTiles[i], p.penalty[i]);
    for (const int split : kTensorSplits) {
      if (!tensor_split_possible(s, unsplit, split)) break;  // nor is any larger one
      const TensorTilePart part = tensor_tile_part(s, gpu, p, quantisation, unsplit, per_k, split);
      const double term = tensor_soft_minimum_term(part.seconds / reference);
      sum += term;
      if (!derivatives) continue;
      const double share = term / part.seconds;
      time.by_quantisation += share * part.rounding * part.per_wave;
      time.by_prologue += share * part.waves * per_k;
      time.by_penalty[i] += share * part.waves * part.per_wave;
      if (split > 1) time.by_split_seconds += share;
    }
  }
  time.seconds = reference * std::exp(std::log(sum) * (-1.0 / kTensorTileSharpness));
  const double scale = time.seconds / sum;
  time.by_quantisation *= scale;
  time.by_prologue *= scale;
  time.by_split_seconds *= scale;
  for (double& by_penalty : time.by_penalty) by_penalty *= scale;
  return time;
}

}  // namespace tessera
