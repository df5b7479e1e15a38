#include "lab/fit/baselines/per_op_regression.h"

#include <Eigen/QR>

#include "lab/fit/fp32/octaves.h"

namespace tessera {
namespace {

RegressionSample sample_of(const KernelMeasurement& row, const GpuTraits& gpu) {
  const Kernel kernel = kernel_of(row);
  return {.compute = kernel.flops.value() / gpu.flops,
          .traffic = static_cast<double>(kernel.bytes().value()) / gpu.bandwidth,
          .latency = row.latency_us * 1e-6};
}

}  // namespace

RegressionCoefficients fit_relative(const std::vector<RegressionSample>& samples) {
  if (samples.empty()) return {};
  // The constant in microseconds: columns of about one magnitude.
  constexpr double kMicrosecond = 1e-6;
  Eigen::MatrixXd relative(static_cast<Eigen::Index>(samples.size()), 3);
  for (Eigen::Index i = 0; i < relative.rows(); ++i) {
    const RegressionSample& s = samples[i];
    relative.row(i) << kMicrosecond / s.latency, s.compute / s.latency, s.traffic / s.latency;
  }
  const Eigen::Vector3d x =
      relative.completeOrthogonalDecomposition().solve(Eigen::VectorXd::Ones(relative.rows()));
  return {.seconds = x(0) * kMicrosecond, .per_compute = x(1), .per_traffic = x(2)};
}

PerOpRegression::PerOpRegression(const std::vector<const GpuData*>& gpus) {
  for (std::size_t op = 0; op < kMeasuredOps; ++op) {
    std::vector<RegressionSample> samples;
    for (const GpuData* gpu : gpus) {
      if (static_cast<MeasuredOp>(op) == MeasuredOp::linear && gpu->linear_anomalous) continue;
      for (const KernelMeasurement* row : rows_over_octaves(*gpu, static_cast<MeasuredOp>(op)))
        samples.push_back(sample_of(*row, gpu->traits));
    }
    coefficients_[op] = fit_relative(samples);
  }
}

double PerOpRegression::seconds(const KernelMeasurement& row, const GpuTraits& gpu) const {
  const RegressionSample sample = sample_of(row, gpu);
  return coefficients_[static_cast<std::size_t>(row.op)].latency(sample.compute, sample.traffic);
}

}  // namespace tessera
