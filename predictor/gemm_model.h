#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "predictor/gpu_traits.h"
#include "predictor/power_mean.h"
#include "workloads/kernel.h"

namespace tessera {

/// out[m,n] = A[m,k] * B[k,n], `batch` times; sizes in elements.
struct GemmShape {
  double batch = 1, m = 0, n = 0, k = 0;
  double bytes = 0;      ///< compulsory traffic
  bool strided = false;  ///< rows of both operands are k elements apart (TN)
  double flops() const { return 2 * batch * m * n * k; }
};

inline GemmShape gemm_shape(const Kernel& kernel) {
  return {.batch = static_cast<double>(kernel.batch),
          .m = static_cast<double>(kernel.m),
          .n = static_cast<double>(kernel.n),
          .k = static_cast<double>(kernel.k),
          .bytes = static_cast<double>(kernel.bytes().value()),
          .strided = kernel.layout == GemmLayout::tn};
}

/// Output tile of one thread block.
struct GemmTile {
  int m = 0, n = 0;
};

/// Tiles of cuBLAS' FP32 kernels as they occur in kernel names (maxwell_, volta_, ampere_sgemm_*).
inline constexpr std::array<GemmTile, 7> kGemmTiles{
    {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32}, {32, 128}, {32, 32}}};

/// Slices of the contraction that a small output may be split into.
inline constexpr std::array<int, 7> kSplits{1, 2, 3, 4, 6, 8, 16};

/// Sharpness of the soft minimum over tiles and splits; the penalties are fitted for this value.
inline constexpr double kTileSharpness = 20;

/// Shared parameters of one GEMM class. T: double to predict, Dual to train.
template <class T>
struct GemmParameters {
  static constexpr int kCount = 9 + static_cast<int>(kGemmTiles.size()) - 1;

  T norm;           ///< exponent that joins compute and memory time, > 1
  T prologue;       ///< prologue and epilogue of a tile, in units of k
  T quantisation;   ///< share of whole waves in the wave count, in (0, 1)
  T memory;         ///< 1 / share of peak bandwidth, >= 1
  T split_seconds;  ///< fixed cost of a split contraction [s]
  T stride_pascal;  ///< slowdown of rows far apart on Pascal (TLB reach), >= 0
  T stride;         ///< the same on later GPUs
  T stride_centre;  ///< log2 of the row length at which half of it is felt
  T stride_width;   ///< in log2 of the row length
  /// Log slowdown of each tile against kGemmTiles[0], >= 0.
  std::array<T, kGemmTiles.size()> tile_penalty;

  /// From `kCount` unconstrained numbers, the form in which they are fitted.
  static GemmParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    GemmParameters p;
    p.norm = T(1.0) + exp(x[0]);
    p.prologue = exp(x[1]);
    p.quantisation = sigmoid(x[2]);
    p.memory = T(1.0) + exp(x[3]);
    p.split_seconds = exp(x[4]) * 1e-6;
    p.stride_pascal = exp(x[5]);
    p.stride = exp(x[6]);
    p.stride_centre = x[7];
    p.stride_width = exp(x[8]);
    p.tile_penalty[0] = T(0.0);
    for (std::size_t i = 1; i < kGemmTiles.size(); ++i) p.tile_penalty[i] = softplus(x[8 + i]);
    return p;
  }
};

/// Start of a fit: a perfect card with plausible tiles.
inline constexpr std::array<double, GemmParameters<double>::kCount> kGemmStart{
    .2, 3.5, 0, -1.5, 1, -3, -4, 14, 0, -1, -1, -.5, -.5, -.5, 0};

inline double wave_count(const GemmShape& s, const GemmTile& tile, int split, double sms) {
  return s.batch * std::ceil(s.m / tile.m) * std::ceil(s.n / tile.n) * split / sms;
}

/// A split pays only while the unsplit tiles leave SMs idle; more is not in the menu.
inline bool split_possible(const GemmShape& s, double unsplit_waves, int split) {
  return split == 1 || (unsplit_waves * (split - 1) < 1 && s.k / split >= 32);
}

/// Seconds of the tiles on an ideal card for one tile and split: waves times time per wave.
template <class T>
T tile_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p,
               std::size_t tile_index, int split) {
  using std::exp;
  const GemmTile tile = kGemmTiles[tile_index];
  const double waves = wave_count(s, tile, split, gpu.sms);
  const double soft = std::max(waves, 1.0);
  const double per_k = 2.0 * tile.m * tile.n * gpu.sms / gpu.flops;
  const T quantised = p.quantisation * (std::ceil(waves) - soft) + T(soft);
  T seconds = quantised * (p.prologue + T(s.k / split)) * per_k * exp(p.tile_penalty[tile_index]);
  if (split == 1) return seconds;
  const double partials = 8.0 * split * s.batch * s.m * s.n / gpu.bandwidth;
  return seconds + p.split_seconds + T(partials);
}

/// Slowdown from operand rows that lie k elements apart, >= 1.
template <class T>
T stride_slowdown(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p) {
  if (!s.strided) return T(1.0);
  const T felt = sigmoid((T(std::log2(s.k)) - p.stride_centre) / p.stride_width);
  return T(1.0) + (gpu.pascal ? p.stride_pascal : p.stride) * felt;
}

/// Compute time [s] before the GPU's own scalar: soft minimum over tiles and splits.
template <class T>
T gemm_compute_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p) {
  using std::exp;
  using std::log;
  const double ideal = s.flops() / gpu.flops;
  T sum(0.0);
  for (std::size_t tile = 0; tile < kGemmTiles.size(); ++tile) {
    const double unsplit = wave_count(s, kGemmTiles[tile], 1, gpu.sms);
    for (const int split : kSplits) {
      if (!split_possible(s, unsplit, split)) continue;
      sum += exp(log(tile_seconds(s, gpu, p, tile, split) * (1 / ideal)) * -kTileSharpness);
    }
  }
  return ideal * exp(log(sum) * (-1 / kTileSharpness)) * stride_slowdown(s, gpu, p);
}

template <class T>
T gemm_memory_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p) {
  return p.memory * (s.bytes / gpu.bandwidth);
}

/// Sharpness of the change to the power-limited rate; 6 leaves half of the rate unlimited.
inline constexpr double kPowerLimitSharpness = 6;

/// `compute` slowed to the power-limited rate; `sustained_flops` 0 = no limit.
template <class T>
T limited_by_power(const GemmShape& s, const T& compute, double sustained_flops) {
  if (sustained_flops <= 0) return compute;
  return smooth_max(compute, T(s.flops() / sustained_flops), T(kPowerLimitSharpness));
}

/// Duration [s] in a queued stream. `slowdown` is the GPU's own log scalar.
template <class T>
T gemm_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p,
               const T& slowdown, double sustained_flops) {
  using std::exp;
  const T compute =
      limited_by_power(s, T(exp(slowdown) * gemm_compute_seconds(s, gpu, p)), sustained_flops);
  return smooth_max(compute, gemm_memory_seconds(s, gpu, p), p.norm);
}

}  // namespace tessera
