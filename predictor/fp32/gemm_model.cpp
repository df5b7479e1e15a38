#include "predictor/fp32/gemm_model.h"

#include <cmath>

namespace tessera {
namespace {

/// Share of the extra sectors that rows of k elements touch: rows of a multiple of 8 elements start
/// on a 32-byte sector, odd ones hardly ever.
double sector_misalignment(std::int64_t k) {
  if (k % 8 == 0) return 0;
  if (k % 4 == 0) return 0.5;
  return k % 2 == 0 ? 0.75 : 0.875;
}

/// Seconds of one tile and split and what they consist of.
struct TilePart {
  double seconds = 0;
  double per_wave = 0;  ///< of one wave
  double waves = 0;     ///< quantised
  double rounding = 0;  ///< waves that whole ones would take more
  double per_k = 0;     ///< of one wave, per element of k
};

TilePart tile_part(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<double>& p,
                   double quantisation, const GemmTile& tile, double slowdown, int split) {
  const double waves = wave_count(s, tile, split, gpu.sms);
  const double soft = std::max(waves, 1.0);
  TilePart part{.rounding = std::ceil(waves) - soft,
                .per_k = 2.0 * tile.m * tile.n * gpu.sms / gpu.flops * slowdown};
  part.waves = quantisation * part.rounding + soft;
  part.per_wave = (p.prologue + s.k / split) * part.per_k;
  part.seconds = part.waves * part.per_wave;
  if (split > 1)
    part.seconds += p.split_seconds + 8.0 * split * s.batch * s.m * s.n / gpu.bandwidth;
  return part;
}

}  // namespace

double tile_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<double>& p,
                    const TileMenu<double>& menu, std::size_t tile_index, int split) {
  return tile_part(s, gpu, p, menu.quantisation, kGemmTiles[tile_index],
                   std::exp(menu.penalty[tile_index]), split)
      .seconds;
}

TileTime soft_minimum_over_tiles(const GemmShape& s, const GpuTraits& gpu,
                                 const GemmParameters<double>& p, const TileMenu<double>& menu,
                                 bool derivatives) {
  // Relative to the ideal time, so that no power overflows. With S the sum of x^-n, the result is
  // S^(-1/n), and its derivative by an x is S^(-1/n) / S * x^-n / x.
  const double ideal = s.flops() / gpu.flops;
  double sum = 0;
  TileTime time;
  for (std::size_t i = 0; i < kGemmTiles.size(); ++i) {
    const double unsplit = wave_count(s, kGemmTiles[i], 1, gpu.sms);
    const double slowdown = std::exp(menu.penalty[i]);
    for (const int split : kSplits) {
      if (!split_possible(s, unsplit, split)) break;  // nor is any larger one
      const TilePart part = tile_part(s, gpu, p, menu.quantisation, kGemmTiles[i], slowdown, split);
      const double term = soft_minimum_term(part.seconds / ideal);
      sum += term;
      if (!derivatives) continue;
      const double share = term / part.seconds;
      time.by_quantisation += share * part.rounding * part.per_wave;
      time.by_prologue += share * part.waves * part.per_k;
      time.by_penalty[i] += share * part.waves * part.per_wave;
      if (split > 1) time.by_split_seconds += share;
    }
  }
  time.seconds = ideal * std::exp(std::log(sum) * (-1.0 / kTileSharpness));
  const double scale = time.seconds / sum;
  time.by_quantisation *= scale;
  time.by_prologue *= scale;
  time.by_split_seconds *= scale;
  for (double& by_penalty : time.by_penalty) by_penalty *= scale;
  return time;
}

GemmShape gemm_shape(const Kernel& kernel) {
  const bool strided = kernel.layout == GemmLayout::tn;
  return {.batch = static_cast<double>(kernel.batch),
          .m = static_cast<double>(kernel.m),
          .n = static_cast<double>(kernel.n),
          .k = static_cast<double>(kernel.k),
          .bytes = static_cast<double>(kernel.bytes().value()),
          .strided = strided,
          .misalignment = strided ? sector_misalignment(kernel.k) : 0};
}

}  // namespace tessera
