#include "lab/fit/baselines/per_op_regression.h"

#include <Eigen/QR>

#include "lab/fit/fp32/octaves.h"

namespace tessera {
namespace {

RegressionSample sample_of(const Kernel& kernel, const GpuTraits& gpu) {
  return {.compute = kernel.flops.value() / gpu.flops,
          .traffic = static_cast<double>(kernel.bytes().value()) / gpu.bandwidth};
}

RegressionSample sample_of(const KernelMeasurement& row, const GpuTraits& gpu) {
  RegressionSample sample = sample_of(kernel_of(row), gpu);
  sample.latency = row.latency_us * 1e-6;
  return sample;
}

/// The operator that stands for a kind.
MeasuredOp op_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return MeasuredOp::linear;
    case KernelKind::batched_gemm:
      return MeasuredOp::bmm;
    case KernelKind::softmax:
      return MeasuredOp::softmax;
    case KernelKind::layer_norm:
      return MeasuredOp::layer_norm;
    default:
      return MeasuredOp::add;
  }
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

double PerOpRegression::seconds(const Kernel& kernel, const GpuTraits& gpu) const {
  const RegressionSample sample = sample_of(kernel, gpu);
  const auto op = static_cast<std::size_t>(op_of(kernel.kind));
  return coefficients_[op].latency(sample.compute, sample.traffic);
}

}  // namespace tessera
