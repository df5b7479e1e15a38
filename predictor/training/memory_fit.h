#pragma once

#include <array>
#include <vector>

#include "predictor/memory_model.h"

namespace tessera {

/// One timed memory-bound call as the fit sees it.
struct MemorySample {
  int gpu = 0;
  MemoryClass memory_class = MemoryClass::elementwise;
  double bytes = 0;
  double rows = 0;
  double seconds = 0;  ///< isolated, launch floor included
  double weight = 1;
};

struct MemoryFitGpu {
  GpuTraits traits;
  std::array<double, kMemoryClasses> floor_seconds{};  ///< fastest calls seen per class
};

struct MemoryFit {
  MemoryParameters<double> shared;
  std::vector<double> slowdown;                           ///< log, per GPU
  std::vector<std::array<double, kMemoryClasses>> floor;  ///< [s], per GPU
  double mean_absolute = 0;
};

/// Residual of one sample; x holds the shared unconstrained parameters, then log slowdown and
/// log(floor / 1 us) of the sample's GPU and class.
template <class T>
T memory_residual(const MemorySample& sample, const GpuTraits& gpu, std::span<const T> x) {
  using std::exp;
  using std::log;
  constexpr std::size_t kShared = MemoryParameters<T>::kCount;
  const auto p = MemoryParameters<T>::from_unconstrained(x);
  const T duration =
      exp(x[kShared]) * memory_seconds(sample.memory_class, sample.bytes, sample.rows, gpu, p);
  return log(exp(x[kShared + 1]) * 1e-6 + duration) - T(std::log(sample.seconds));
}

MemoryFit fit_memory(const std::vector<MemoryFitGpu>& gpus,
                     const std::vector<MemorySample>& samples);

}  // namespace tessera
