#pragma once

#include <array>

#include "predictor/fp32/gemm_model.h"
#include "predictor/fp32/softplus_table.h"
#include "predictor/kernel_predictor.h"

namespace tessera {

/// The model of gemm_model.h for one class of products on one GPU, compiled: what does not depend
/// on the shape is worked out once. Training differentiates the formulas there; predictions run
/// here, several times faster and equal to 1e-7 (tests/predictor/gemm_table_test.cpp).
class GemmTable {
 public:
  /// `slowdown` is the GPU's log scalar, `sustained_flops` its power limit [FLOP/s], 0 = none.
  GemmTable(const GemmWeights& weights, const GpuTraits& gpu, double slowdown,
            double sustained_flops);

  /// Duration in a queued stream, its compute and memory terms, the fastest tile without split and
  /// its waves. All sizes of `shape` are at least 1.
  KernelPrediction predict(const GemmShape& shape) const;

 private:
  /// One number per tile, with an unused last one: whole vector registers.
  static constexpr std::size_t kLanes = 8;
  using Lanes = std::array<double, kLanes>;
  /// The soft minimum over tiles and splits.
  struct TileChoice {
    std::size_t tile = 0;  ///< fastest without split
    double waves = 0;      ///< of that tile
    double reference = 0;  ///< seconds of one of the tiles
    double sum = 0;        ///< of (reference / seconds)^sharpness over tiles and splits
  };
  TileChoice choose_tile(const GemmShape& shape) const;
  double quantised_waves(double waves) const;
  Lanes block_counts(const GemmShape& shape) const;
  double split_terms(const GemmShape& shape, const Lanes& blocks, const Lanes& waves,
                     double reference) const;
  double row_distance_factor(const GemmShape& shape) const;
  double log_smooth_max(double a, double b, double p) const;

  const SoftplusTable& softplus_ = SoftplusTable::shared();
  double sms_, wave_bias_;
  double quantisation_;
  double prologue_;
  Lanes seconds_per_k_{};  ///< one wave, per element of k
  double split_seconds_;
  double partials_;  ///< seconds per output element and split
  double log_slowdown_;
  double stride_;
  double reach_per_log_k_, reach_per_log_output_, reach_offset_;
  double misaligned_;  ///< log
  double seconds_per_byte_, log_seconds_per_byte_;
  bool power_limited_;
  double log_seconds_per_limited_flop_;
  double norm_;
};

}  // namespace tessera
