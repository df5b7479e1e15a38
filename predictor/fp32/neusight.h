#pragma once

#include <array>

#include "predictor/gpu/gpu_traits.h"
#include "predictor/kernel_predictor.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Work of one kernel as NeuSight cuts it: equal tiles, one per SM and wave.
struct NeusightTiling {
  int tile_m = 0, tile_n = 0;  ///< 0 where the kind has no such tile
  double tile_flops = 0;
  double tile_bytes = 0;
  double tiles = 0;
};

/// Position of a kind's net in PredictorWeights::neusight.
std::size_t neusight_class(KernelKind kind);

NeusightTiling neusight_gemm_tiling(const Kernel& kernel, int tile_m, int tile_n);
/// Elementwise: 512 elements per tile (128 threads x 4). Softmax and layer norm: one row per tile.
NeusightTiling neusight_vector_tiling(const Kernel& kernel);

/// Whole waves of tiles.
double neusight_waves(const NeusightTiling& tiling, const GpuTraits& gpu);

/// Logs of: tile arithmetic and tile traffic at the SM's share of peak, and the traffic of all
/// waves against memory bandwidth and L2 of the SM. Lee et al., ASPLOS 2025, section 4.
std::array<double, 4> neusight_features(const NeusightTiling& tiling, const GpuTraits& gpu);

/// Latency at utilization 1 [s].
double neusight_ideal_seconds(const NeusightTiling& tiling, const GpuTraits& gpu);

/// sigmoid(gamma) - sigmoid(alpha) / waves, kept above kMinUtilization.
double neusight_utilization(double alpha, double gamma, double waves);
inline constexpr double kMinUtilization = 1e-3;

/// NeuSight: a small net per class gives the utilization of a kernel's waves. As published, launch
/// overhead is inside the utilization, so it adds none for isolated calls.
class NeusightPredictor final : public KernelPredictor {
 public:
  /// Throws InputError if `weights` holds no nets.
  NeusightPredictor(const GpuSpec& gpu, const PredictorWeights& weights);

  KernelPrediction predict(const Kernel& kernel) const override;
  Seconds isolated_launch_overhead(const Kernel&) const override { return {}; }

 private:
  NeusightTiling tiling_of(const Kernel& kernel, const NeusightClass& net) const;

  GpuTraits traits_;
  TrainingRange range_;
  std::vector<NeusightClass> nets_;
};

}  // namespace tessera
