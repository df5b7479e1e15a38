#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "predictor/fp32/power_mean.h"
#include "predictor/fp32/soft_minimum.h"
#include "predictor/gpu/gpu_traits.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// out[m,n] = A[m,k] * B[k,n], `batch` times; sizes in elements.
struct GemmShape {
  double batch = 1, m = 0, n = 0, k = 0;
  double bytes = 0;         ///< compulsory traffic
  bool strided = false;     ///< rows of both operands are k elements apart (TN)
  double misalignment = 0;  ///< of such rows to memory sectors, in [0, 1]
  double flops() const { return 2 * batch * m * n * k; }
};

GemmShape gemm_shape(const Kernel& kernel);

/// Output tile of one thread block.
struct GemmTile {
  int m = 0, n = 0;
};

/// Tiles of cuBLAS' FP32 kernels as they occur in kernel names (maxwell_, volta_, ampere_sgemm_*).
inline constexpr std::array<GemmTile, 7> kGemmTiles{
    {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32}, {32, 128}, {32, 32}}};
inline constexpr int kGemmTileCount = static_cast<int>(kGemmTiles.size());

/// Slices of the contraction that a small output may be split into.
inline constexpr std::array<int, 7> kSplits{1, 2, 3, 4, 6, 8, 16};

/// Sharpness of the change to the power-limited rate; 6 leaves half of the rate unlimited.
inline constexpr double kPowerLimitSharpness = 6;

/// Parameters of one GEMM class that all GPUs share. T: double to predict, Dual to train.
template <class T>
struct GemmParameters {
  static constexpr int kCount = 12;

  T norm;                ///< exponent that joins compute and memory time, > 1
  T prologue;            ///< prologue and epilogue of a tile, in units of k
  T memory;              ///< 1 / share of peak bandwidth, > 1
  T split_seconds;       ///< fixed cost of a split contraction [s]
  T stride_maxwell;      ///< slowdown of rows far apart with Maxwell's kernels (TLB reach), > 0
  T stride;              ///< the same with later kernels
  T stride_centre;       ///< log2 of the row length at which half of it is felt
  T stride_width;        ///< in log2 of the row length
  T stride_rows;         ///< by how much log2 of the row count moves that centre down
  T misaligned_maxwell;  ///< log slowdown of rows that start off a sector, Maxwell's kernels
  T misaligned;          ///< the same with later kernels
  T launch_share;        ///< of the launch floor that an isolated call adds to a long kernel

  /// From `kCount` unconstrained numbers, the form in which they are fitted.
  static GemmParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {.norm = T(1.0) + exp(x[0]),
            .prologue = exp(x[1]),
            .memory = T(1.0) + exp(x[2]),
            .split_seconds = exp(x[3]) * 1e-6,
            .stride_maxwell = exp(x[4]),
            .stride = exp(x[5]),
            .stride_centre = x[6],
            .stride_width = exp(x[7]),
            .stride_rows = x[8],
            .misaligned_maxwell = x[9],
            .misaligned = x[10],
            .launch_share = sigmoid(x[11])};
  }
  /// The same numbers in the same order.
  static GemmParameters from_values(std::span<const T> v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]};
  }
  std::array<T, kCount> values() const {
    return {norm,       prologue,      memory,       split_seconds, stride_maxwell,
            stride,     stride_centre, stride_width, stride_rows,   misaligned_maxwell,
            misaligned, launch_share};
  }
};

/// Which tiles a family of kernels runs well, and how sharply whole waves show.
template <class T>
struct TileMenu {
  static constexpr int kCount = kGemmTileCount;  ///< quantisation and all tiles but the first

  T quantisation;                         ///< share of whole waves in the wave count, in (0, 1)
  std::array<T, kGemmTileCount> penalty;  ///< log slowdown against tile 0, whose own is 0; >= 0

  /// From the menu that all families share plus the family's own deviations.
  static TileMenu from_unconstrained(std::span<const T> shared, std::span<const T> own) {
    TileMenu menu{.quantisation = sigmoid(shared[0] + own[0]), .penalty = {}};
    menu.penalty[0] = T(0.0);
    for (std::size_t i = 1; i < kGemmTiles.size(); ++i)
      menu.penalty[i] = softplus(shared[i] + own[i]);
    return menu;
  }
  /// Quantisation, then the penalties of all tiles but the first.
  static TileMenu from_values(std::span<const T> v) {
    TileMenu menu{.quantisation = v[0], .penalty = {}};
    menu.penalty[0] = T(0.0);
    std::copy(v.begin() + 1, v.begin() + kCount, menu.penalty.begin() + 1);
    return menu;
  }
  std::array<T, kCount> values() const {
    std::array<T, kCount> v{quantisation};
    std::copy(penalty.begin() + 1, penalty.end(), v.begin() + 1);
    return v;
  }
};

/// Everything trained of one GEMM class but the effects of single GPUs.
struct GemmWeights {
  GemmParameters<double> shared{};
  std::array<TileMenu<double>, kSgemmFamilies> menus{};

  const TileMenu<double>& menu(const GpuTraits& gpu) const {
    return menus[static_cast<std::size_t>(gpu.family)];
  }
};

inline double wave_count(const GemmShape& s, const GemmTile& tile, int split, double sms) {
  return s.batch * std::ceil(s.m / tile.m) * std::ceil(s.n / tile.n) * split / sms;
}

/// A split pays only while the unsplit tiles leave SMs idle; more is not in the menu.
inline bool split_possible(const GemmShape& s, double unsplit_waves, int split) {
  return split == 1 || (unsplit_waves * (split - 1) < 1 && s.k / split >= 32);
}

/// Seconds of the fastest tiles and splits, with their derivatives by what they depend on.
struct TileTime {
  double seconds = 0;
  double by_quantisation = 0;
  double by_prologue = 0;
  double by_split_seconds = 0;
  std::array<double, kGemmTileCount> by_penalty{};
};

/// Seconds for one tile and split before losses common to all: waves times time per wave.
double tile_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<double>& p,
                    const TileMenu<double>& menu, std::size_t tile_index, int split);

/// Soft minimum of tile_seconds over tiles and splits. The derivatives, which cost as much again,
/// are left out where they are not asked for.
TileTime soft_minimum_over_tiles(const GemmShape& s, const GpuTraits& gpu,
                                 const GemmParameters<double>& p, const TileMenu<double>& menu,
                                 bool derivatives);

/// `time` as a function of the parameters; their derivatives follow by the chain rule.
inline double lifted(const TileTime& time, const GemmParameters<double>&, const TileMenu<double>&) {
  return time.seconds;
}
template <int N>
Dual<N> lifted(const TileTime& time, const GemmParameters<Dual<N>>& p,
               const TileMenu<Dual<N>>& menu) {
  Dual<N> result(time.seconds, time.by_quantisation * menu.quantisation.derivatives +
                                   time.by_prologue * p.prologue.derivatives +
                                   time.by_split_seconds * p.split_seconds.derivatives);
  for (std::size_t i = 1; i < kGemmTiles.size(); ++i)
    result.derivatives += time.by_penalty[i] * menu.penalty[i].derivatives;
  return result;
}

inline const GemmParameters<double>& values_of(const GemmParameters<double>& p) {
  return p;
}
inline const TileMenu<double>& values_of(const TileMenu<double>& menu) {
  return menu;
}
/// The parameters without their derivatives.
template <template <class> class Parameters, int N>
Parameters<double> values_of(const Parameters<Dual<N>>& parameters) {
  std::array<double, Parameters<double>::kCount> values;
  std::ranges::transform(parameters.values(), values.begin(),
                         [](const Dual<N>& x) { return x.value; });
  return Parameters<double>::from_values(values);
}

/// Slowdown from operand rows that lie far apart and off the memory sectors, >= 1.
template <class T>
T row_slowdown(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p) {
  using std::exp;
  if (!s.strided) return T(1.0);
  const bool maxwell = gpu.family == SgemmFamily::maxwell;
  const double log_rows = 0.5 * std::log2(s.m * s.n) - 12;
  const T reach = T(std::log2(s.k)) - p.stride_centre + p.stride_rows * log_rows;
  const T felt = sigmoid(reach / p.stride_width);
  const T far_apart = T(1.0) + (maxwell ? p.stride_maxwell : p.stride) * felt;
  return far_apart * exp((maxwell ? p.misaligned_maxwell : p.misaligned) * s.misalignment);
}

/// Compute time [s] before the GPU's own scalar: soft minimum over tiles and splits.
template <class T>
T gemm_compute_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p,
                       const TileMenu<T>& menu) {
  constexpr bool kDerivatives = !std::is_same_v<T, double>;
  const TileTime time =
      soft_minimum_over_tiles(s, gpu, values_of(p), values_of(menu), kDerivatives);
  return lifted(time, p, menu) * row_slowdown(s, gpu, p);
}

template <class T>
T gemm_memory_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p) {
  return p.memory * (s.bytes / gpu.bandwidth);
}

/// `compute` slowed to the power-limited rate; `sustained_flops` 0 = no limit.
template <class T>
T limited_by_power(const GemmShape& s, const T& compute, double sustained_flops) {
  if (sustained_flops <= 0) return compute;
  return smooth_max(compute, T(s.flops() / sustained_flops), T(kPowerLimitSharpness));
}

/// Duration [s] in a queued stream. `slowdown` is the GPU's own log scalar.
template <class T>
T gemm_seconds(const GemmShape& s, const GpuTraits& gpu, const GemmParameters<T>& p,
               const TileMenu<T>& menu, const T& slowdown, double sustained_flops) {
  using std::exp;
  const T unlimited = exp(slowdown) * gemm_compute_seconds(s, gpu, p, menu);
  const T compute = limited_by_power(s, unlimited, sustained_flops);
  return smooth_max(compute, gemm_memory_seconds(s, gpu, p), p.norm);
}

}  // namespace tessera
