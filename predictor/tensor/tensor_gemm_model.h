#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hw/gpu.h"
#include "predictor/fp32/power_mean.h"
#include "workloads/program/kernel.h"

namespace tessera {

// Dense products of 16-bit operands on tensor cores (bf16, fp16), written once as templates: T is
// double to predict, Dual to train.
//
// Other formats count in 16-bit steps of the contraction: k elements of 1 byte (fp8) or 4 bytes
// (tf32) as k/2 or 2k elements, and the peak of the format in the same unit. A tile then moves the
// same bytes per step, and its prologue takes as long as with 16-bit operands. Never measured.

/// What such a product depends on of a GPU.
struct TensorTraits {
  double flops = 0;      ///< dense tensor peak of the precision, in 16-bit steps [FLOP/s]
  double bandwidth = 0;  ///< of the memory [B/s]
  double sms = 0;
  double in_flight = 0;  ///< what the memory moves within its latency under load [B]
};

/// From asking for bytes to having them on a busy GPU [s]: traffic of less than the memory moves in
/// that time waits more than it moves. 14 to 22 us describe A100 and H100 as well as each other, as
/// the size of their L2 does (40 and 50 MiB: 21 and 16 us of their bandwidth); where the two part,
/// L40S and B200, it is this that holds (decision 41).
inline constexpr double kMemoryLatency = 18e-6;

/// Throws InputError where the GPU has no tensor peak for `precision`.
TensorTraits tensor_traits(const GpuSpec& gpu, Precision precision);

/// out[m,n] = A[m,k] * B[k,n], `batch` times; sizes in elements, k in 16-bit steps.
struct TensorShape {
  double batch = 1, m = 0, n = 0, k = 0;
  double bytes = 0;  ///< compulsory traffic
  /// Of a grouped product the rows of each group, which sum to m; empty = one product.
  std::span<const std::int64_t> groups{};
  bool whole = false;  ///< no two thread blocks share a contraction
  double flops() const { return 2 * batch * m * n * k; }
};

/// Refers to `kernel.group_sizes`. Groups of unequal contraction count as equally long.
TensorShape tensor_shape(const Kernel& kernel);

/// Output tile of one thread block.
struct TensorTile {
  int m = 0, n = 0;
};

/// Tiles that half-precision libraries offer on Ampere and Hopper, the m side first. Six of them
/// change no error on a GPU that was measured but help where one was not
/// (results/predictor/half.md).
inline constexpr std::array<TensorTile, 15> kTensorTiles{{{128, 256},
                                                          {256, 128},
                                                          {128, 128},
                                                          {256, 64},
                                                          {192, 128},
                                                          {128, 64},
                                                          {64, 128},
                                                          {64, 256},
                                                          {256, 192},
                                                          {128, 192},
                                                          {64, 64},
                                                          {32, 128},
                                                          {32, 64},
                                                          {16, 64},
                                                          {16, 128}}};
inline constexpr int kTensorTileCount = static_cast<int>(kTensorTiles.size());

/// Slices of the contraction.
inline constexpr std::array<int, 7> kTensorSplits{1, 2, 3, 4, 6, 8, 16};

/// Sharpness of the soft minimum over tiles and splits; parameters are fitted for this value.
inline constexpr int kTensorTileSharpness = 32;
/// Sharpness of the change to the power-limited rate.
inline constexpr double kTensorCapSharpness = 8;
/// Duration from which the loss of the power-limited rate counts, per decade [s].
inline constexpr double kTensorCapOnset = 1e-3;
/// Least slice of the contraction that is worth a thread block, in elements.
inline constexpr double kTensorLeastSlice = 128;
/// Most waves that a split contraction may make: beyond, slices gain nothing.
inline constexpr double kTensorMostSplitWaves = 4;

/// Shared by all GPUs and libraries.
template <class T>
struct TensorParameters {
  static constexpr int kCount = 6 + kTensorTileCount;

  T prologue;       ///< prologue and epilogue of a tile, in units of k
  T split_seconds;  ///< fixed cost of a split contraction [s]
  T norm;           ///< exponent that joins compute and memory time, > 1
  T l2_centre;  ///< log of traffic / what is in flight at which half of the memory rate is reached
  T l2_slope;   ///< per unit of that log, > 0
  T l2_gain;    ///< memory rate of traffic far below that, relative to far above, > 0
  std::array<T, kTensorTileCount> penalty;  ///< log slowdown of a tile against peak, >= 0

  /// From `kCount` unconstrained numbers, the form in which they are fitted.
  static TensorParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    TensorParameters p{.prologue = exp(x[0]),
                       .split_seconds = exp(x[1]) * 1e-6,
                       .norm = T(1.0) + exp(x[2]),
                       .l2_centre = x[3],
                       .l2_slope = exp(x[4]),
                       .l2_gain = exp(x[5]),
                       .penalty = {}};
    for (int i = 0; i < kTensorTileCount; ++i)
      p.penalty[i] = 0.25 * softplus(T(4.0 * x[6 + i]));  // a tile never beats peak
    return p;
  }
  /// The same numbers in the same order.
  static TensorParameters from_values(std::span<const T> v) {
    TensorParameters p{v[0], v[1], v[2], v[3], v[4], v[5], {}};
    std::copy_n(v.begin() + 6, kTensorTileCount, p.penalty.begin());
    return p;
  }
  std::array<T, kCount> values() const {
    std::array<T, kCount> v{prologue, split_seconds, norm, l2_centre, l2_slope, l2_gain};
    std::copy(penalty.begin(), penalty.end(), v.begin() + 6);
    return v;
  }
};

/// Of one GPU, in log time.
template <class T>
struct TensorGpuEffect {
  static constexpr int kCount = 4;

  T compute;         ///< slowdown of the tiles; also absorbs what the soft minimum gives away
  T memory;          ///< peak / reached bandwidth
  T cap;             ///< peak / power-limited rate
  T cap_per_decade;  ///< loss of that rate per decade of duration above kTensorCapOnset

  static TensorGpuEffect from_values(std::span<const T> v) { return {v[0], v[1], v[2], v[3]}; }
  std::array<T, kCount> values() const { return {compute, memory, cap, cap_per_decade}; }
};

/// Of one library version (and the way it was timed) on one GPU.
template <class T>
struct TensorStackEffect {
  static constexpr int kCount = 4;

  T quantisation;    ///< share of whole waves in the wave count, in (0, 1)
  T launch_seconds;  ///< start and drain of a kernel; not part of queued durations
  T compute;         ///< log slowdown of tiles and of the power-limited rate
  T memory;          ///< log slowdown of the memory

  static TensorStackEffect from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {sigmoid(x[0]), exp(x[1]) * 1e-6, x[2], x[3]};
  }
  static TensorStackEffect from_values(std::span<const T> v) { return {v[0], v[1], v[2], v[3]}; }
  std::array<T, kCount> values() const { return {quantisation, launch_seconds, compute, memory}; }
};

/// Rows of tiles, over all groups.
inline double tensor_tile_rows(const TensorShape& s, const TensorTile& tile) {
  if (s.groups.empty()) return std::ceil(s.m / tile.m);
  double rows = 0;
  for (const std::int64_t group : s.groups) rows += std::ceil(static_cast<double>(group) / tile.m);
  return rows;
}

inline double tensor_blocks(const TensorShape& s, const TensorTile& tile) {
  return s.batch * tensor_tile_rows(s, tile) * std::ceil(s.n / tile.n);
}

/// Slices shorter than kTensorLeastSlice are not in the menu, nor those that make more waves than
/// kTensorMostSplitWaves.
inline bool tensor_split_possible(const TensorShape& s, double unsplit_waves, int split) {
  return split == 1 || (!s.whole && unsplit_waves * split <= kTensorMostSplitWaves &&
                        s.k / split >= kTensorLeastSlice);
}

/// Seconds of the fastest tiles and splits, with their derivatives by what they depend on.
struct TensorTileTime {
  double seconds = 0;
  double by_quantisation = 0;
  double by_prologue = 0;
  double by_split_seconds = 0;
  std::array<double, kTensorTileCount> by_penalty{};
};

/// One tile and split before losses common to all.
struct TensorTileChoice {
  std::size_t tile = 0;  ///< in kTensorTiles
  int split = 1;
  double waves = 0;    ///< thread blocks / SMs
  double seconds = 0;  ///< quantised waves times time per wave, and the cost of the split
};

TensorTileChoice tensor_tile_choice(const TensorShape& s, const TensorTraits& gpu,
                                    const TensorParameters<double>& p, double quantisation,
                                    std::size_t tile, int split);

/// The fastest of all tiles and splits.
TensorTileChoice best_tensor_tile(const TensorShape& s, const TensorTraits& gpu,
                                  const TensorParameters<double>& p, double quantisation);

/// Soft minimum over tiles and splits. The derivatives, which cost as much again, are left out
/// where they are not asked for.
TensorTileTime soft_minimum_over_tensor_tiles(const TensorShape& s, const TensorTraits& gpu,
                                              const TensorParameters<double>& p,
                                              double quantisation, bool derivatives);

/// Soft minimum over tiles and splits [s] as a function of the parameters; derivatives by the chain
/// rule.
inline double tensor_tile_seconds(const TensorShape& s, const TensorTraits& gpu,
                                  const TensorParameters<double>& p, double quantisation) {
  return soft_minimum_over_tensor_tiles(s, gpu, p, quantisation, false).seconds;
}
template <int N>
Dual<N> tensor_tile_seconds(const TensorShape& s, const TensorTraits& gpu,
                            const TensorParameters<Dual<N>>& p, const Dual<N>& quantisation) {
  std::array<double, TensorParameters<double>::kCount> values;
  std::ranges::transform(p.values(), values.begin(), [](const Dual<N>& x) { return x.value; });
  const TensorTileTime time = soft_minimum_over_tensor_tiles(
      s, gpu, TensorParameters<double>::from_values(values), quantisation.value, true);
  Dual<N> result(time.seconds, time.by_quantisation * quantisation.derivatives +
                                   time.by_prologue * p.prologue.derivatives +
                                   time.by_split_seconds * p.split_seconds.derivatives);
  for (int i = 0; i < kTensorTileCount; ++i)
    result.derivatives += time.by_penalty[i] * p.penalty[i].derivatives;
  return result;
}

/// Decades for which a product whose ideal duration is `ideal` [s] loses power-limited rate.
inline double tensor_cap_decades(double ideal) {
  return std::log10(1 + ideal / kTensorCapOnset);
}

/// Time at the power-limited rate [s].
template <class T>
T tensor_capped_seconds(const TensorShape& s, const TensorTraits& gpu, const TensorGpuEffect<T>& g,
                        const TensorStackEffect<T>& stack) {
  using std::exp;
  const double ideal = s.flops() / gpu.flops;
  return exp(g.cap + g.cap_per_decade * tensor_cap_decades(ideal) + stack.compute) * ideal;
}

/// Compute time [s]: tiles, or the rate that the power limit leaves where that is longer.
template <class T>
T tensor_compute_seconds(const TensorShape& s, const TensorTraits& gpu,
                         const TensorParameters<T>& p, const TensorGpuEffect<T>& g,
                         const TensorStackEffect<T>& stack) {
  using std::exp;
  const T tiles =
      exp(g.compute + stack.compute) * tensor_tile_seconds(s, gpu, p, stack.quantisation);
  return smooth_max(tiles, tensor_capped_seconds(s, gpu, g, stack), T(kTensorCapSharpness));
}

/// Memory time [s]; the reached rate depends on how the traffic compares with what is in flight.
template <class T>
T tensor_memory_seconds(const TensorShape& s, const TensorTraits& gpu, const TensorParameters<T>& p,
                        const TensorGpuEffect<T>& g, const TensorStackEffect<T>& stack) {
  using std::exp;
  const T beyond = sigmoid(p.l2_slope * (T(std::log(s.bytes / gpu.in_flight)) - p.l2_centre));
  const T relative = beyond + (T(1.0) - beyond) / p.l2_gain;
  return exp(g.memory + stack.memory) * relative * (s.bytes / gpu.bandwidth);
}

/// Duration [s] in a queued stream; `stack.launch_seconds` comes on top of a timed call.
template <class T>
T tensor_gemm_seconds(const TensorShape& s, const TensorTraits& gpu, const TensorParameters<T>& p,
                      const TensorGpuEffect<T>& g, const TensorStackEffect<T>& stack) {
  return smooth_max(tensor_compute_seconds(s, gpu, p, g, stack),
                    tensor_memory_seconds(s, gpu, p, g, stack), p.norm);
}

}  // namespace tessera
