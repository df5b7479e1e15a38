#pragma once

#include <string>
#include <vector>

#include "predictor/gemm_model.h"

namespace tessera {

/// One timed product as the fit sees it.
struct GemmSample {
  int gpu = 0;  ///< position in the list of GPUs of the fit
  GemmShape shape;
  double seconds = 0;          ///< isolated, launch floor included
  double sustained_flops = 0;  ///< power limit that applied to this call; 0 = none
  double weight = 1;
};

/// A GPU of a GEMM fit, with where its own parameters start.
struct GemmFitGpu {
  GpuTraits traits;
  double floor_seconds = 40e-6;  ///< fastest calls seen
};

struct GemmFit {
  GemmParameters<double> shared;
  std::vector<double> slowdown;  ///< log, per GPU
  std::vector<double> floor;     ///< isolated launch floor [s], per GPU
  double mean_absolute = 0;      ///< weighted mean |log error|
};

/// Residual of one sample: log(floor + duration) - log(measured); x holds the shared unconstrained
/// parameters, then log slowdown and log(floor / 1 us) of the sample's GPU.
template <class T>
T gemm_residual(const GemmSample& sample, const GpuTraits& gpu, std::span<const T> x) {
  using std::exp;
  using std::log;
  constexpr std::size_t kShared = GemmParameters<T>::kCount;
  const auto p = GemmParameters<T>::from_unconstrained(x);
  const T duration = gemm_seconds(sample.shape, gpu, p, x[kShared], sample.sustained_flops);
  return log(exp(x[kShared + 1]) * 1e-6 + duration) - T(std::log(sample.seconds));
}

GemmFit fit_gemm(const std::vector<GemmFitGpu>& gpus, const std::vector<GemmSample>& samples);

}  // namespace tessera
