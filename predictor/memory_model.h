#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "predictor/gpu_traits.h"
#include "predictor/power_mean.h"
#include "workloads/kernel.h"

namespace tessera {

/// Kernels limited by memory traffic that were measured; the other kinds derive from them.
enum class MemoryClass : std::uint8_t { elementwise, softmax, layer_norm };
inline constexpr std::size_t kMemoryClasses = 3;

/// How a kind of kernel uses memory: as a measured class, times a factor in time.
struct MemoryTraits {
  MemoryClass memory_class = MemoryClass::elementwise;
  double factor = 1;  ///< time against the class for the same bytes
};

/// The kinds that were not measured take the class they resemble; their factors are judgements from
/// how the kernels address memory, not fits.
constexpr MemoryTraits memory_traits(KernelKind kind) {
  switch (kind) {
    case KernelKind::softmax:
      return {MemoryClass::softmax, 1};
    case KernelKind::layer_norm:
      return {MemoryClass::layer_norm, 1};
    case KernelKind::copy:  // one side strided: short segments, no 16-byte accesses
      return {MemoryClass::elementwise, 1.1};
    case KernelKind::gather:  // whole rows, but at random
      return {MemoryClass::elementwise, 1.25};
    case KernelKind::scatter:  // atomic adds: every write is also a read
      return {MemoryClass::elementwise, 2};
    default:
      return {MemoryClass::elementwise, 1};
  }
}

/// Shared parameters of the memory-bound classes. T: double to predict, Dual to train.
template <class T>
struct MemoryParameters {
  static constexpr int kCount = 7;

  std::array<T, kMemoryClasses> slowdown;  ///< log time against elementwise; [0] is 0
  T l2_centre;   ///< log(traffic / L2 size) at which half of the traffic misses
  T l2_slope;    ///< steepness of that change, > 0
  T l2_speedup;  ///< speed of a hit against a miss, > 1
  T row_cost;    ///< layer norm: a row costs as much as this many more bytes
  T warp_rows;   ///< softmax: the same

  /// From `kCount` unconstrained numbers, the form in which they are fitted.
  static MemoryParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {.slowdown = {T(0.0), x[0], x[1]},
            .l2_centre = x[2],
            .l2_slope = exp(x[3]),
            .l2_speedup = T(1.0) + exp(x[4]),
            .row_cost = exp(x[5]),
            .warp_rows = exp(x[6])};
  }
};

inline constexpr std::array<double, MemoryParameters<double>::kCount> kMemoryStart{0,  .1, 0, 0,
                                                                                   .3, 5,  3};

/// Seconds of `bytes` of traffic before the GPU's own share of peak bandwidth.
template <class T>
T memory_seconds(MemoryClass memory_class, double bytes, double rows, const GpuTraits& gpu,
                 const MemoryParameters<T>& p) {
  using std::exp;
  const T miss = sigmoid(p.l2_slope * (T(std::log(bytes / gpu.l2)) - p.l2_centre));
  const T rate = miss + (T(1.0) - miss) / p.l2_speedup;
  T traffic(bytes);
  if (memory_class == MemoryClass::layer_norm) traffic += p.row_cost * rows;
  if (memory_class == MemoryClass::softmax) traffic += p.warp_rows * rows;
  return traffic * (1 / gpu.bandwidth) * rate *
         exp(p.slowdown[static_cast<std::size_t>(memory_class)]);
}

}  // namespace tessera
