#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "predictor/weights/weights.h"

namespace tessera {

inline bool every_gpu(const TrainedGpu&) {
  return true;
}

/// Mean of `value` over the GPUs that `chosen` picks; NaN where it picks none.
template <class Chosen, class Value>
double mean_over(const std::vector<TrainedGpu>& gpus, const Chosen& chosen, const Value& value) {
  double sum = 0, count = 0;
  for (const TrainedGpu& gpu : gpus) {
    if (!chosen(gpu)) continue;
    sum += value(gpu);
    count += 1;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

/// Mean over the GPUs that `preferred` picks, or over all where it picks none.
template <class Preferred, class Value>
double mean_preferring(const std::vector<TrainedGpu>& gpus, const Preferred& preferred,
                       const Value& value) {
  const double mean = mean_over(gpus, preferred, value);
  return std::isnan(mean) ? mean_over(gpus, every_gpu, value) : mean;
}

/// Median of `value`; `gpus` must not be empty.
template <class Value>
double median_over(const std::vector<TrainedGpu>& gpus, const Value& value) {
  std::vector<double> values;
  for (const TrainedGpu& gpu : gpus) values.push_back(value(gpu));
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// The measured GPU that a reader of datasheets would take for an older `traits`: the newest of an
/// earlier generation with the same kind of memory, else one of the same generation, else the
/// newest. `gpus` must not be empty.
const TrainedGpu& predecessor_of(const GpuTraits& traits, const std::vector<TrainedGpu>& gpus);

/// Log GEMM slowdown of a GPU that was never measured, by `weights.rule`, at the clock of dense
/// load; `slowdown` says of which operator class.
double slowdown_by_rule(const GpuTraits& traits, const PredictorWeights& weights,
                        double GpuEffect::*slowdown);

}  // namespace tessera
