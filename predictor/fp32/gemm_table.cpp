#include "predictor/fp32/gemm_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera {
namespace {

// Lanes: explicit loops over whole arrays, which compilers turn into vector instructions.

/// ceil(x) of a multiple x >= 0 of 1/n, up to rounding errors of x; `bias` is ceil_bias(n).
/// Branches nowhere, where std::ceil is a function call unless SSE4 is assumed.
inline double rounded_up(double x, double bias) {
  constexpr double kNoFractions = 0x1p52;
  return (x + bias + kNoFractions) - kNoFractions;
}
/// Lifts x over the middle between two integers where there is a fraction, by a quarter of 1/n.
constexpr double ceil_bias(double n) {
  return 0.5 - 0.25 / n;
}

/// x^kTileSharpness.
inline double sharpened(double x) {
  const double x4 = x * x * x * x;
  const double x16 = x4 * x4 * x4 * x4;
  static_assert(kTileSharpness == 16 + 4);
  return x16 * x4;
}

/// Sum of eight numbers in pairs of pairs.
double sum_of(const std::array<double, 8>& x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/// Extents that tiles have.
constexpr std::array<int, 3> kExtents{32, 64, 128};

constexpr std::size_t extent_index(int extent) {
  return static_cast<std::size_t>(std::ranges::find(kExtents, extent) - kExtents.begin());
}
static_assert(std::ranges::all_of(kGemmTiles, [](const GemmTile& tile) {
  return extent_index(tile.m) < kExtents.size() && extent_index(tile.n) < kExtents.size();
}));

/// No tile is larger, so none takes fewer blocks.
constexpr std::size_t kFewestBlocks = 0;
static_assert(kGemmTiles[kFewestBlocks].m == kExtents.back() &&
              kGemmTiles[kFewestBlocks].n == kExtents.back());

/// Tiles of each extent that cover `size` elements.
std::array<double, kExtents.size()> covers(double size) {
  std::array<double, kExtents.size()> tiles;
  for (std::size_t i = 0; i < tiles.size(); ++i)
    tiles[i] = rounded_up(size / kExtents[i], ceil_bias(kExtents[i]));
  return tiles;
}

}  // namespace

GemmTable::GemmTable(const GemmWeights& weights, const GpuTraits& gpu, double slowdown,
                     double sustained_flops)
    : sms_(gpu.sms),
      wave_bias_(ceil_bias(gpu.sms)),
      quantisation_(weights.menu(gpu).quantisation),
      prologue_(weights.shared.prologue),
      split_seconds_(weights.shared.split_seconds),
      partials_(8.0 / gpu.bandwidth),
      log_slowdown_(slowdown),
      seconds_per_byte_(weights.shared.memory / gpu.bandwidth),
      log_seconds_per_byte_(std::log(seconds_per_byte_)),
      power_limited_(sustained_flops > 0),
      log_seconds_per_limited_flop_(power_limited_ ? -std::log(sustained_flops) : 0),
      norm_(weights.shared.norm) {
  seconds_per_k_.fill(HUGE_VAL);
  for (std::size_t i = 0; i < kGemmTiles.size(); ++i) {
    const double per_k = 2.0 * kGemmTiles[i].m * kGemmTiles[i].n * gpu.sms / gpu.flops;
    seconds_per_k_[i] = per_k * std::exp(weights.menu(gpu).penalty[i]);
  }
  const GemmParameters<double>& p = weights.shared;
  const bool maxwell = gpu.family == SgemmFamily::maxwell;
  stride_ = maxwell ? p.stride_maxwell : p.stride;
  misaligned_ = maxwell ? p.misaligned_maxwell : p.misaligned;
  reach_per_log_k_ = std::numbers::log2e / p.stride_width;
  reach_per_log_output_ = 0.5 * p.stride_rows * std::numbers::log2e / p.stride_width;
  reach_offset_ = -(p.stride_centre + 12 * p.stride_rows) / p.stride_width;
}

/// Thread blocks of each tile for an output without split.
GemmTable::Lanes GemmTable::block_counts(const GemmShape& shape) const {
  const auto rows = covers(shape.m), columns = covers(shape.n);
  Lanes blocks;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kGemmTiles.size(); ++i)
    blocks[i] =
        shape.batch * rows[extent_index(kGemmTiles[i].m)] * columns[extent_index(kGemmTiles[i].n)];
  blocks[kGemmTiles.size()] = blocks[0];
  return blocks;
}

/// Waves of which some share is whole ones.
inline double GemmTable::quantised_waves(double waves) const {
  const double soft = waves < 1 ? 1.0 : waves;
  return quantisation_ * (rounded_up(soft, wave_bias_) - soft) + soft;
}

/// Sum of (reference / seconds)^sharpness over all tiles in more than one slice.
double GemmTable::split_terms(const GemmShape& shape, const Lanes& blocks, const Lanes& waves,
                              double reference) const {
  const double partials = partials_ * shape.batch * shape.m * shape.n;
  Lanes sums{};
  for (const int split : kSplits) {
    if (split == 1) continue;
    if (!split_possible(shape, waves[kFewestBlocks], split)) break;  // nor is any larger one
    const double slices = split, more = split - 1;
    const double cost = split_seconds_ + partials * slices;
    const double k = prologue_ + shape.k / slices;
    Lanes seconds, possible;
    for (std::size_t i = 0; i < kLanes; ++i)
      seconds[i] = quantised_waves(waves[i] * slices) * k * seconds_per_k_[i] + cost;
    for (std::size_t i = 0; i < kLanes; ++i) possible[i] = blocks[i] * more < sms_ ? 1.0 : 0.0;
    for (std::size_t i = 0; i < kLanes; ++i)
      sums[i] += possible[i] * sharpened(reference / seconds[i]);
  }
  return sum_of(sums);
}

GemmTable::TileChoice GemmTable::choose_tile(const GemmShape& shape) const {
  const Lanes blocks = block_counts(shape);
  const double k = prologue_ + shape.k;
  Lanes waves, seconds, terms;
  for (std::size_t i = 0; i < kLanes; ++i) {
    waves[i] = blocks[i] / sms_;
    seconds[i] = quantised_waves(waves[i]) * k * seconds_per_k_[i];
  }
  const double reference = seconds[0];
  for (std::size_t i = 0; i < kLanes; ++i) terms[i] = sharpened(reference / seconds[i]);
  double sum = sum_of(terms);
  std::size_t tile = 0;
#pragma GCC unroll 8
  for (std::size_t i = 1; i < kGemmTiles.size(); ++i) tile = seconds[i] < seconds[tile] ? i : tile;
  if (waves[kFewestBlocks] < 1) sum += split_terms(shape, blocks, waves, reference);
  return {.tile = tile, .waves = waves[tile], .reference = reference, .sum = sum};
}

/// Slowdown from operand rows that lie far apart, >= 1.
inline double GemmTable::row_distance_factor(const GemmShape& shape) const {
  const double reach = reach_per_log_k_ * std::log(shape.k) +
                       reach_per_log_output_ * std::log(shape.m * shape.n) + reach_offset_;
  return 1 + stride_ / (1 + std::exp(-reach));
}

/// Log of smooth_max(exp(a), exp(b), p).
inline double GemmTable::log_smooth_max(double a, double b, double p) const {
  return a + softplus_(p * (b - a)) / p;
}

KernelPrediction GemmTable::predict(const GemmShape& shape) const {
  const TileChoice choice = choose_tile(shape);
  const double far_apart = shape.strided ? row_distance_factor(shape) : 1;
  double log_compute = std::log(choice.reference * far_apart) -
                       std::log(choice.sum) / kTileSharpness + log_slowdown_;
  if (shape.strided) log_compute += misaligned_ * shape.misalignment;
  if (power_limited_) {
    const double log_limit = log_seconds_per_limited_flop_ + std::log(shape.flops());
    log_compute = log_smooth_max(log_compute, log_limit, kPowerLimitSharpness);
  }
  const double log_memory = log_seconds_per_byte_ + std::log(shape.bytes);
  const double log_seconds = log_smooth_max(log_compute, log_memory, norm_);
  return {.duration = Seconds(std::exp(log_seconds)),
          .compute_time = Seconds(std::exp(log_compute)),
          .memory_time = Seconds(seconds_per_byte_ * shape.bytes),
          .tile_m = kGemmTiles[choice.tile].m,
          .tile_n = kGemmTiles[choice.tile].n,
          .waves = choice.waves};
}

}  // namespace tessera
