#pragma once

#include <optional>

#include "hw/gpu.h"
#include "hw/units/quantity.h"

namespace tessera {

/// What GPUs cost while they are rented: price and power of the catalog (`GpuSpec::price`,
/// `GpuSpec::tdp`), which --set overrides.
struct Economy {
  double dollars_per_gpu_hour = 0;  ///< 0: not known
  Watts power;                      ///< of a GPU at its board limit; 0: not published

  static Economy of(const GpuSpec& gpu) { return {gpu.price, gpu.tdp}; }

  /// USD of `gpus` for so long; empty where the price is not known.
  std::optional<double> dollars(double gpus, Seconds time) const {
    if (dollars_per_gpu_hour <= 0) return std::nullopt;
    return dollars_per_gpu_hour * gpus * time.value() / 3600;
  }
  /// Joules of `gpus` for so long: an upper bound, for no GPU runs at its limit all the time, and
  /// hosts and network are not counted. Empty where the power is not known.
  std::optional<double> joules(double gpus, Seconds time) const {
    if (power.value() <= 0) return std::nullopt;
    return power.value() * gpus * time.value();
  }
};

}  // namespace tessera
