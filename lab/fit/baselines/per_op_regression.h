#pragma once

#include <array>
#include <vector>

#include "lab/fit/fp32/dataset.h"

namespace tessera {

/// latency = seconds + per_compute * FLOP / peak + per_traffic * bytes / bandwidth.
struct RegressionCoefficients {
  double seconds = 0;
  double per_compute = 0;
  double per_traffic = 0;

  /// `compute` and `traffic`: seconds at peak rates.
  double latency(double compute, double traffic) const {
    return seconds + per_compute * compute + per_traffic * traffic;
  }
};

/// One timed call: seconds of arithmetic and of traffic at peak rates, seconds measured.
struct RegressionSample {
  double compute = 0, traffic = 0, latency = 0;
};

/// Coefficients with the least sum of squared relative errors, the shortest of them where the
/// samples do not determine all three. All zero without samples.
RegressionCoefficients fit_relative(const std::vector<RegressionSample>& samples);

/// Baseline of the `regression` form: one linear regression per operator, after Li, Sun and Jog
/// (MICRO 2023), who predict operators from FLOPs and bytes. They fit lines per GPU and predict
/// the lines' slopes for a new one from its bandwidth; here work is counted in seconds at the
/// GPU's own peak rates, so that one line serves all GPUs, seen or not.
class PerOpRegression {
 public:
  /// Fits the training rows of `gpus` that the other forms use too.
  explicit PerOpRegression(const std::vector<const GpuData*>& gpus);

  /// Latency [s] of an isolated call on a GPU, seen or not; launch overhead is in the constant.
  double seconds(const KernelMeasurement& row, const GpuTraits& gpu) const;
  /// The same of a kernel of a model. Kinds that were not measured count as additions.
  double seconds(const Kernel& kernel, const GpuTraits& gpu) const;

 private:
  std::array<RegressionCoefficients, kMeasuredOps> coefficients_;
};

}  // namespace tessera
