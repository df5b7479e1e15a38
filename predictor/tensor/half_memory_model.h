#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "predictor/fp32/power_mean.h"

namespace tessera {

/// Memory-bound operators that were timed in 16 bits.
enum class HalfMemoryOp : std::uint8_t {
  add,       ///< residual: two tensors in, one out
  gelu,      ///< one in, one out
  silu_mul,  ///< gated activation: reads two halves of a row, writes one
  rope,      ///< rotary position embedding of Q and K, in place
  rms_norm,
  layer_norm,
  embedding,  ///< gather of whole rows
};
inline constexpr std::size_t kHalfMemoryOps = 7;
std::string_view name_of(HalfMemoryOp op);

/// What the time of a memory-bound kernel depends on.
struct HalfMemoryShape {
  double bytes = 0;  ///< read and written, each operand once
  double rows = 0;   ///< tokens
};

/// Facts of a GPU that memory-bound kernels look at.
struct HalfMemoryGpu {
  double bandwidth = 0;  ///< [B/s]
  double l2 = 0;         ///< [B]
};

/// Where the unconstrained parameters of one operator stand.
enum HalfMemoryParameter : std::size_t {
  kHalfEfficiency,
  kHalfLaunch,
  kHalfGain,
  kHalfCentre,
  kHalfSlope,
  kHalfRow,
  kHalfMemoryParameters
};
/// Unconstrained parameters of one operator, in that order.
using HalfMemoryVector = std::array<double, kHalfMemoryParameters>;

/// Parameters of one operator. T: double to predict, Dual to train.
template <class T>
struct HalfMemoryParameters {
  static constexpr int kCount = kHalfMemoryParameters;

  T efficiency;  ///< share of the memory bandwidth that misses of the L2 reach, > 0
  T launch;      ///< fixed time [s], > 0
  T gain;        ///< speed of an L2 hit against a miss, > 1
  T centre;      ///< log(traffic / L2 size) at which half of the traffic misses
  T slope;       ///< steepness of that change, > 0
  T row_bytes;   ///< a row costs as much as this many more bytes: narrow rows are slower, > 0

  static HalfMemoryParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {.efficiency = exp(x[kHalfEfficiency]),
            .launch = T(1e-6) * exp(x[kHalfLaunch]),
            .gain = T(1.0) + exp(x[kHalfGain]),
            .centre = x[kHalfCentre],
            .slope = exp(x[kHalfSlope]),
            .row_bytes = exp(x[kHalfRow])};
  }
};

/// t0 + B/(eff*BW) * (miss + (1-miss)/gain) [s].
template <class T>
T half_memory_seconds(const HalfMemoryShape& s, const HalfMemoryGpu& gpu,
                      const HalfMemoryParameters<T>& p) {
  const T miss = sigmoid(p.slope * (T(std::log(s.bytes / gpu.l2)) - p.centre));
  const T traffic = T(s.bytes) + p.row_bytes * s.rows;
  return p.launch + traffic * (miss + (T(1.0) - miss) / p.gain) / (p.efficiency * gpu.bandwidth);
}

}  // namespace tessera
