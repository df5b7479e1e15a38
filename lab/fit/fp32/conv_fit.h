#pragma once

#include <array>
#include <vector>

#include "predictor/fp32/conv_model.h"
#include "predictor/fp32/launch_floor.h"

namespace tessera {

/// One timed convolution as the fit sees it.
struct ConvolutionSample {
  int gpu = 0;  ///< position in the list of GPUs of the fit
  ConvolutionShape shape;
  double seconds = 0;  ///< isolated, launch floor included; no power limit was felt
  double earlier = 0;  ///< thousands of convolutions that its process had timed before
  double weight = 1;
};

/// A GPU of a fit, with where its own parameters start.
struct ConvolutionFitGpu {
  GpuTraits traits;
  double floor_seconds = 70e-6;  ///< fastest call seen
};

struct ConvolutionFit {
  ConvolutionParameters<double> shared{};
  std::vector<double> slowdown;  ///< log, per GPU
  std::vector<double> floor;     ///< isolated launch floor of a fresh process [s], per GPU
  std::vector<double> drift;     ///< by which it rose per 1000 convolutions timed [s], per GPU
  double mean_absolute = 0;      ///< weighted mean |log error|
};

/// Where the unconstrained parameters of one residual stand in its argument.
struct ConvolutionLayoutOfParameters {
  static constexpr int kShared = ConvolutionParameters<double>::kCount;
  static constexpr int kSlowdown = kShared;     ///< log, of the sample's GPU
  static constexpr int kFloor = kSlowdown + 1;  ///< log of microseconds
  static constexpr int kDrift = kFloor + 1;     ///< log of microseconds per 1000 calls
  static constexpr int kCount = kDrift + 1;
};

/// Log of predicted over measured time of one sample. The floor of the timed process rose with the
/// number of shapes that it had tried algorithms for, so a call's own floor depends on its place.
template <class T>
T convolution_residual(const ConvolutionSample& sample, const GpuTraits& gpu,
                       std::span<const T> x) {
  using std::exp;
  using std::log;
  using At = ConvolutionLayoutOfParameters;
  const auto p = ConvolutionParameters<T>::from_unconstrained(x);
  const ConvolutionGpu<T> own{gpu, x[At::kSlowdown], 0};
  const T floor = (exp(x[At::kFloor]) + exp(x[At::kDrift]) * sample.earlier) * 1e-6;
  const T isolated =
      isolated_seconds(convolution_seconds(sample.shape, own, p), floor, p.launch_share);
  return log(isolated) - T(std::log(sample.seconds));
}

ConvolutionFit fit_convolution_model(const std::vector<ConvolutionFitGpu>& gpus,
                                     const std::vector<ConvolutionSample>& samples);

}  // namespace tessera
