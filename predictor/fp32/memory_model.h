#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "predictor/fp32/memory_class.h"
#include "predictor/fp32/power_mean.h"
#include "predictor/gpu/gpu_traits.h"
#include "workloads/program/kernel.h"

namespace tessera {

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

/// Traffic of one memory-bound kernel.
struct MemoryShape {
  MemoryClass memory_class = MemoryClass::elementwise;
  double bytes = 0;
  double rows = 0;             ///< softmax and norms: reductions
  double extra_bytes = 0;      ///< softmax and norms: traffic beyond one read and one write
  double refetched = 0;        ///< traffic that is read once more where the L2 misses it
  double reuse_footprint = 0;  ///< what the L2 would have to keep for that
  bool wide = false;  ///< rows too long for one warp's registers (PyTorch's softmax: > 1024)
};
MemoryShape memory_shape(const Kernel& kernel);

/// Parameters of the memory-bound classes that all GPUs share. T: double to predict, Dual to train.
template <class T>
struct MemoryParameters {
  static constexpr int kCount = 9;

  T l2_centre;       ///< log(traffic / L2 size) at which half of the traffic misses
  T l2_slope;        ///< steepness of that change, > 0
  T l2_speedup;      ///< speed of a hit against a miss, > 1
  T softmax_row;     ///< a row costs as much as this many more bytes
  T layer_norm_row;  ///< the same for layer norm
  T wide_softmax;    ///< log slowdown of softmax over wide rows
  /// Of the launch floor that an isolated call adds to a long kernel, per class: operators that
  /// prepare more on the host launch later.
  std::array<T, kMemoryClasses> launch_share;

  /// From `kCount` unconstrained numbers, the form in which they are fitted.
  static MemoryParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {.l2_centre = x[0],
            .l2_slope = exp(x[1]),
            .l2_speedup = T(1.0) + exp(x[2]),
            .softmax_row = exp(x[3]),
            .layer_norm_row = exp(x[4]),
            .wide_softmax = x[5],
            .launch_share = {sigmoid(x[6]), sigmoid(x[7]), sigmoid(x[8])}};
  }
};

/// Bandwidth losses of one GPU: log of peak / reached.
template <class T>
struct BandwidthSlowdown {
  T own;          ///< in the kernel's class
  T elementwise;  ///< in class elementwise
};

/// Share of traffic that misses the L2 where `footprint` bytes are used again: trained on how
/// kernels slow down as their tensors outgrow the L2.
template <class T>
T l2_miss(double footprint, const GpuTraits& gpu, const MemoryParameters<T>& p) {
  return sigmoid(p.l2_slope * (T(std::log(footprint / gpu.l2)) - p.l2_centre));
}

/// Log slowdown of the class of `shape` on a GPU that nobody timed; `by_rule`: per MemoryClass, of
/// GPUs whose L2 lost the rows. A norm reads its rows again (half of one read and one write), from
/// the L2 where that holds the rows that the SMs have at hand.
double slowdown_of_passes(const MemoryShape& shape, const GpuTraits& gpu,
                          const MemoryParameters<double>& p,
                          const std::array<double, kMemoryClasses>& by_rule);

/// Seconds of the kernel's traffic. Softmax and norms lose time per element to row-wise arithmetic,
/// which one read and one write were timed with; backward kernels move more bytes for about the
/// same arithmetic, so their extra bytes run like elementwise ones.
template <class T>
T memory_seconds(const MemoryShape& s, const GpuTraits& gpu, const MemoryParameters<T>& p,
                 const BandwidthSlowdown<T>& slowdown) {
  using std::exp;
  const T miss = l2_miss(s.bytes, gpu, p);
  const T rate = miss + (T(1.0) - miss) / p.l2_speedup;
  T traffic(s.bytes - s.extra_bytes);
  T log_slowdown = slowdown.own;
  if (s.memory_class == MemoryClass::layer_norm) traffic += p.layer_norm_row * s.rows;
  if (s.memory_class == MemoryClass::softmax) traffic += p.softmax_row * s.rows;
  if (s.memory_class == MemoryClass::softmax && s.wide) log_slowdown += p.wide_softmax;
  if (s.refetched > 0) traffic += l2_miss(s.reuse_footprint, gpu, p) * s.refetched;
  const T weighted = traffic * exp(log_slowdown) + exp(slowdown.elementwise) * s.extra_bytes;
  return weighted * (1 / gpu.bandwidth) * rate;
}

}  // namespace tessera
