#pragma once

#include <array>
#include <vector>

#include "predictor/fp32/launch_floor.h"
#include "predictor/fp32/memory_model.h"

namespace tessera {

/// One timed memory-bound call as the fit sees it.
struct TrafficSample {
  int gpu = 0;  ///< position in the list of GPUs of the fit
  MemoryShape shape;
  double seconds = 0;  ///< isolated, launch floor included
  double weight = 1;
};

struct MemoryFitGpu {
  GpuTraits traits;
  std::array<double, kMemoryClasses> floor_seconds{};  ///< fastest calls seen per class
};

struct MemoryFit {
  MemoryParameters<double> shared;
  std::vector<std::array<double, kMemoryClasses>> slowdown;  ///< log, per GPU and class
  std::vector<std::array<double, kMemoryClasses>> floor;     ///< [s], per GPU and class
  double mean_absolute = 0;                                  ///< weighted mean |log error|
};

/// Log of predicted over measured time of one sample. Log `slowdown` and `floor` (log of
/// microseconds) of the sample's GPU and class.
template <class T>
T memory_residual(const TrafficSample& sample, const GpuTraits& gpu, const MemoryParameters<T>& p,
                  const T& slowdown, const T& floor) {
  using std::exp;
  using std::log;
  const T duration = memory_seconds(sample.shape, gpu, p, {slowdown, T(0.0)});
  const T share = p.launch_share[static_cast<std::size_t>(sample.shape.memory_class)];
  return log(isolated_seconds(duration, T(exp(floor) * 1e-6), share)) - T(std::log(sample.seconds));
}

/// The same from unconstrained parameters: the shared ones, then slowdown and floor.
template <class T>
T memory_residual(const TrafficSample& sample, const GpuTraits& gpu, std::span<const T> x) {
  constexpr std::size_t kShared = MemoryParameters<T>::kCount;
  return memory_residual(sample, gpu, MemoryParameters<T>::from_unconstrained(x), x[kShared],
                         x[kShared + 1]);
}

MemoryFit fit_memory(const std::vector<MemoryFitGpu>& gpus,
                     const std::vector<TrafficSample>& samples);

}  // namespace tessera
