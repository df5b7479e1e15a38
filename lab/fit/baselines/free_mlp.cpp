#include "lab/fit/baselines/free_mlp.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "lab/fit/fp32/octaves.h"
#include "lab/fit/seeded_descent.h"
#include "predictor/fp32/neusight.h"
#include "predictor/roofline.h"

namespace tessera {
namespace {

constexpr int kHiddenUnits = 32;
// Twice the epochs did not help on left-out GPUs: 62 against 54 % on long linear calls.
constexpr DescentSchedule kSchedule{.epochs = 10, .batch = 64, .rate = 5e-3};
constexpr double kQuadraticZone = 0.02;  ///< of the log error: repeatability of a timing
// Beyond this many standard deviations a net of tanh units knows nothing; the inputs end there.
constexpr double kFeatureLimit = 3;

double roofline(const KernelMeasurement& row, const GpuTraits& gpu) {
  return roofline_seconds(kernel_of(row), gpu);
}

}  // namespace

LogErrorLoss log_error_loss(const Eigen::MatrixXd& outputs, const Eigen::MatrixXd& targets) {
  const Eigen::ArrayXXd difference = (outputs - targets).array();
  const Eigen::ArrayXXd size = (difference.square() + kQuadraticZone * kQuadraticZone).sqrt();
  return {.value = size.mean(),
          .gradient = (difference / size / static_cast<double>(size.size())).matrix()};
}

/// Normalised on the way into the net; a column is one example.
struct FreeMlp::Examples {
  std::vector<Features> features;
  std::vector<double> targets;

  void add(const GpuData& gpu, MeasuredOp op) {
    for (const KernelMeasurement* row : rows_over_octaves(gpu, op)) {
      features.push_back(features_of(*row, gpu.traits));
      targets.push_back(std::log(row->latency_us * 1e-6 / roofline(*row, gpu.traits)));
    }
  }
};

FreeMlp::Features FreeMlp::features_of(const std::array<std::int64_t, 4>& sizes,
                                       const GpuTraits& gpu) {
  const auto log_of = [](std::int64_t size) {
    return size == 0 ? 0 : std::log(static_cast<double>(size));
  };
  return {log_of(sizes[0]),    log_of(sizes[1]),        log_of(sizes[2]),  log_of(sizes[3]),
          std::log(gpu.flops), std::log(gpu.bandwidth), std::log(gpu.sms), std::log(gpu.l2)};
}

FreeMlp::Features FreeMlp::features_of(const KernelMeasurement& row, const GpuTraits& gpu) {
  const bool gemm = row.op == MeasuredOp::linear || row.op == MeasuredOp::bmm;
  if (gemm) return features_of({row.batch, row.m, row.n, row.k}, gpu);
  return features_of({row.rows, row.cols, 0, 0}, gpu);
}

FreeMlp::Features FreeMlp::features_of(const Kernel& kernel, const GpuTraits& gpu) {
  if (kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm)
    return features_of({kernel.batch, kernel.m, kernel.n, kernel.k}, gpu);
  return features_of({kernel.rows, kernel.cols, 0, 0}, gpu);
}

FreeMlp::Net FreeMlp::train(const Examples& examples, std::uint64_t seed) {
  Net net;
  std::mt19937_64 random(seed);
  net.mlp = initial_mlp({kFeatures, kHiddenUnits, kHiddenUnits, 1}, random);
  if (examples.targets.empty()) return net;
  const auto count = static_cast<Eigen::Index>(examples.targets.size());
  using Columns = Eigen::Map<const Eigen::Matrix<double, kFeatures, Eigen::Dynamic>>;
  const Columns raw(examples.features.front().data(), kFeatures, count);
  const Eigen::VectorXd mean = raw.rowwise().mean();
  // A feature that is the same everywhere, as GPU facts are on one GPU, stays near zero.
  const Eigen::VectorXd scale =
      ((raw.colwise() - mean).array().square().rowwise().mean()).sqrt() + 1e-6;
  Eigen::VectorXd::Map(net.mean.data(), kFeatures) = mean;
  Eigen::VectorXd::Map(net.scale.data(), kFeatures) = scale;
  const Eigen::MatrixXd inputs =
      ((raw.colwise() - mean).array().colwise() / scale.array()).matrix();
  const Eigen::RowVectorXd targets = Eigen::RowVectorXd::Map(examples.targets.data(), count);
  Adam adam(net.mlp.values.size());
  descend(examples.targets.size(), kSchedule, random,
          [&](std::span<const std::size_t> batch, double rate) {
            const Eigen::MatrixXd x = inputs(Eigen::all, batch);
            const Eigen::MatrixXd y = targets(Eigen::all, batch);
            const Eigen::MatrixXd slope = log_error_loss(mlp_forward(net.mlp, x), y).gradient;
            adam.update(net.mlp.values, mlp_gradient(net.mlp, x, slope), rate);
          });
  return net;
}

FreeMlp::FreeMlp(const std::vector<const GpuData*>& gpus, std::uint64_t seed) {
  static constexpr std::array<MeasuredOp, kNeusightClasses> kOps{
      MeasuredOp::linear, MeasuredOp::bmm, MeasuredOp::add, MeasuredOp::softmax,
      MeasuredOp::layer_norm};
  for (std::size_t c = 0; c < kOps.size(); ++c) {
    Examples examples;
    for (const GpuData* gpu : gpus) {
      if (kOps[c] == MeasuredOp::linear && gpu->linear_anomalous) continue;
      examples.add(*gpu, kOps[c]);
      if (kOps[c] == MeasuredOp::add) examples.add(*gpu, MeasuredOp::gelu);
    }
    nets_[c] = train(examples, seed);
  }
}

double FreeMlp::seconds(const Kernel& kernel, const Features& features,
                        const GpuTraits& gpu) const {
  const Net& net = nets_[neusight_class(kernel.kind)];
  Eigen::VectorXd inputs(static_cast<Eigen::Index>(kFeatures));
  for (std::size_t i = 0; i < kFeatures; ++i)
    inputs(static_cast<Eigen::Index>(i)) =
        std::clamp((features[i] - net.mean[i]) / net.scale[i], -kFeatureLimit, kFeatureLimit);
  return roofline_seconds(kernel, gpu) * std::exp(mlp_forward(net.mlp, inputs)(0));
}

double FreeMlp::seconds(const KernelMeasurement& row, const GpuTraits& gpu) const {
  return seconds(kernel_of(row), features_of(row, gpu), gpu);
}

double FreeMlp::seconds(const Kernel& kernel, const GpuTraits& gpu) const {
  return seconds(kernel, features_of(kernel, gpu), gpu);
}

}  // namespace tessera
