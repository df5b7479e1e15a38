#pragma once

#include <array>
#include <vector>

#include "lab/fit/fp32/ingredient.h"
#include "predictor/fp32/gemm_model.h"
#include "predictor/fp32/launch_floor.h"

namespace tessera {

/// One timed product as the fit sees it.
struct GemmSample {
  int gpu = 0;  ///< position in the list of GPUs of the fit
  GemmShape shape;
  double seconds = 0;  ///< isolated, launch floor included; no power limit was felt
  double weight = 1;
};

/// A GPU of a GEMM fit, with where its own parameters start.
struct GemmFitGpu {
  GpuTraits traits;
  double floor_seconds = 40e-6;  ///< fastest calls seen
};

struct GemmFit {
  GemmWeights weights;
  std::vector<double> slowdown;  ///< log, per GPU
  std::vector<double> floor;     ///< isolated launch floor [s], per GPU
  double mean_absolute = 0;      ///< weighted mean |log error|
};

/// Where the unconstrained parameters of one residual stand in its argument.
struct GemmLayoutOfParameters {
  static constexpr int kShared = GemmParameters<double>::kCount;
  static constexpr int kMenu = TileMenu<double>::kCount;
  static constexpr int kSharedMenu = kShared;
  static constexpr int kFamilyMenu = kSharedMenu + kMenu;
  static constexpr int kSlowdown = kFamilyMenu + kMenu;  ///< log, of the sample's GPU
  static constexpr int kFloor = kSlowdown + 1;           ///< log of microseconds
  static constexpr int kCount = kFloor + 1;
};

/// Log of predicted over measured time of one sample. `slowdown` and `floor` (log of microseconds)
/// of the sample's GPU.
template <class T>
T gemm_residual(const GemmSample& sample, const GpuTraits& gpu, const GemmParameters<T>& p,
                const TileMenu<T>& menu, const T& slowdown, const T& floor) {
  using std::exp;
  using std::log;
  const T duration = gemm_seconds(sample.shape, gpu, p, menu, slowdown, 0);
  return log(isolated_seconds(duration, T(exp(floor) * 1e-6), p.launch_share)) -
         T(std::log(sample.seconds));
}

/// The same from unconstrained parameters.
template <class T>
T gemm_residual(const GemmSample& sample, const GpuTraits& gpu, std::span<const T> x) {
  using At = GemmLayoutOfParameters;
  const auto menu = TileMenu<T>::from_unconstrained(x.subspan(At::kSharedMenu, At::kMenu),
                                                    x.subspan(At::kFamilyMenu, At::kMenu));
  return gemm_residual(sample, gpu, GemmParameters<T>::from_unconstrained(x), menu,
                       x[At::kSlowdown], x[At::kFloor]);
}

GemmFit fit_gemm(const std::vector<GemmFitGpu>& gpus, const std::vector<GemmSample>& samples,
                 LeftOutIngredient without = {});

}  // namespace tessera
