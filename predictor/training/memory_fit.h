#pragma once

#include <array>
#include <vector>

#include "predictor/launch_floor.h"
#include "predictor/memory_model.h"

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

/// Log of predicted over measured time of one sample; x holds the shared unconstrained parameters,
/// then log slowdown and log(floor / 1 us) of the sample's GPU and class.
template <class T>
T memory_residual(const TrafficSample& sample, const GpuTraits& gpu, std::span<const T> x) {
  using std::exp;
  using std::log;
  constexpr std::size_t kShared = MemoryParameters<T>::kCount;
  const auto p = MemoryParameters<T>::from_unconstrained(x);
  const T duration = memory_seconds(sample.shape, gpu, p, {x[kShared], T(0.0)});
  const T floor = exp(x[kShared + 1]) * 1e-6;
  const T share = p.launch_share[static_cast<std::size_t>(sample.shape.memory_class)];
  return log(isolated_seconds(duration, floor, share)) - T(std::log(sample.seconds));
}

MemoryFit fit_memory(const std::vector<MemoryFitGpu>& gpus,
                     const std::vector<TrafficSample>& samples);

}  // namespace tessera
