#pragma once

#include <span>
#include <vector>

#include "lab/fit/tensor/tensor_rows.h"
#include "predictor/tensor/tensor_gemm_model.h"

namespace tessera {

/// Where the unconstrained parameters of one residual stand in its argument.
struct TensorLayoutOfParameters {
  static constexpr int kShared = TensorParameters<double>::kCount;
  static constexpr int kGpu = kShared;
  static constexpr int kStack = kGpu + TensorGpuEffect<double>::kCount;
  static constexpr int kCount = kStack + TensorStackEffect<double>::kCount;
};

/// Log of predicted over measured time of one sample.
template <class T>
T tensor_residual(const TensorSample& sample, const TensorTraits& gpu, const TensorParameters<T>& p,
                  const TensorGpuEffect<T>& g, const TensorStackEffect<T>& stack) {
  using std::log;
  const T timed = tensor_gemm_seconds(sample.shape, gpu, p, g, stack) + stack.launch_seconds;
  return log(timed) - T(std::log(sample.seconds));
}

/// The same from unconstrained parameters.
template <class T>
T tensor_residual(const TensorSample& sample, const TensorTraits& gpu, std::span<const T> x) {
  using At = TensorLayoutOfParameters;
  return tensor_residual(sample, gpu, TensorParameters<T>::from_unconstrained(x),
                         TensorGpuEffect<T>::from_values(x.subspan(At::kGpu)),
                         TensorStackEffect<T>::from_unconstrained(x.subspan(At::kStack)));
}

/// Positions as in the TensorData that was fitted; effects of GPUs and stacks without samples
/// stand where the fit started.
struct TensorFit {
  TensorParameters<double> shared{};
  std::vector<TensorGpuEffect<double>> gpus;
  std::vector<TensorStackEffect<double>> stacks;
  double mean_absolute = 0;  ///< weighted mean |log error|
  int iterations = 0;
  std::size_t rows = 0;  ///< of `samples` that were fitted to

  double timed_seconds(const TensorSample& sample, const TensorStack& stack) const {
    const TensorStackEffect<double>& effect = stacks[sample.stack];
    return tensor_gemm_seconds(sample.shape, stack.traits, shared, gpus[stack.gpu], effect) +
           effect.launch_seconds;
  }
};

/// Fits to at most `kRowsPerStack` of the samples of each stack, chosen by hash. Weights: a stack
/// counts as the root of its rows; kernels below 10 us count 0.3, below 50 us 0.7.
/// Deterministic, one thread.
TensorFit fit_tensor_gemm(const TensorData& data, const std::vector<TensorSample>& samples);

/// A GPU's own compute, memory and power-limited rate from a few of its kernels, drawn to those of
/// `start` with `sigma` in log time. `stack` as given.
TensorGpuEffect<double> calibrated_tensor_gpu(const std::vector<TensorSample>& samples,
                                              const TensorTraits& traits,
                                              const TensorParameters<double>& shared,
                                              const TensorGpuEffect<double>& start,
                                              const TensorStackEffect<double>& stack,
                                              double sigma = 0.15);

}  // namespace tessera
