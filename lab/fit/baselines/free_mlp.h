#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "predictor/fp32/mlp.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Mean of sqrt(d^2 + 0.02^2) over the examples, d = output - target, and its derivative by every
/// output. `outputs` and `targets` [1, examples].
struct LogErrorLoss {
  double value = 0;
  Eigen::MatrixXd gradient;
};
LogErrorLoss log_error_loss(const Eigen::MatrixXd& outputs, const Eigen::MatrixXd& targets);

/// Baseline of the `free_mlp` form: one net per operator class learns log(time / roofline) from the
/// logs of the shape and of the GPU's peak, bandwidth, SM count and cache, with nothing built in of
/// how kernels run. So do the nets of Habitat (Yu et al., USENIX ATC 2021), which are far larger
/// and were trained on far more shapes.
class FreeMlp {
 public:
  /// Trains on the rows of `gpus` that the `neusight` form uses too; deterministic in `seed`.
  FreeMlp(const std::vector<const GpuData*>& gpus, std::uint64_t seed);

  /// Latency [s] of an isolated call on a GPU, seen or not.
  double seconds(const KernelMeasurement& row, const GpuTraits& gpu) const;
  /// The same of a kernel of a model. Kinds that were not measured count as elementwise.
  double seconds(const Kernel& kernel, const GpuTraits& gpu) const;

 private:
  static constexpr std::size_t kFeatures = 8;
  using Features = std::array<double, kFeatures>;
  struct Net {
    MlpWeights mlp;
    Features mean{}, scale{};
  };
  struct Examples;

  static Features features_of(const KernelMeasurement& row, const GpuTraits& gpu);
  static Features features_of(const Kernel& kernel, const GpuTraits& gpu);
  /// Sizes [batch, m, n, k] of a product, [rows, columns, 0, 0] of anything else; 0: none.
  static Features features_of(const std::array<std::int64_t, 4>& sizes, const GpuTraits& gpu);
  double seconds(const Kernel& kernel, const Features& features, const GpuTraits& gpu) const;
  static Net train(const Examples& examples, std::uint64_t seed);

  std::array<Net, kNeusightClasses> nets_;  ///< classes as in neusight_class()
};

}  // namespace tessera
