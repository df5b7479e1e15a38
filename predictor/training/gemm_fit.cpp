#include "predictor/training/gemm_fit.h"

#include <cmath>

#include "predictor/training/least_absolute.h"

namespace tessera {
namespace {

constexpr int kShared = GemmParameters<double>::kCount;
constexpr int kLocal = 2;
using Gradient = Dual<kShared + kLocal>;

/// Number in the vector of all parameters of parameter `i` of a residual on GPU `gpu`.
int global_index(int i, int gpu) {
  return i < kShared ? i : kShared + kLocal * gpu + (i - kShared);
}

void residual_of(const GemmSample& sample, const GpuTraits& gpu, const Eigen::VectorXd& parameters,
                 bool derivatives, RowResidual& out) {
  std::array<double, kShared + kLocal> x;
  for (int i = 0; i < kShared + kLocal; ++i) x[i] = parameters(global_index(i, sample.gpu));
  out.derivatives.clear();
  if (!derivatives) {
    out.value = gemm_residual<double>(sample, gpu, x);
    return;
  }
  std::array<Gradient, kShared + kLocal> duals;
  for (int i = 0; i < kShared + kLocal; ++i) duals[i] = Gradient::variable(x[i], i);
  const Gradient residual = gemm_residual<Gradient>(sample, gpu, duals);
  out.value = residual.value;
  for (int i = 0; i < kShared + kLocal; ++i)
    out.derivatives.push_back({global_index(i, sample.gpu), residual.derivatives(i)});
}

Eigen::VectorXd start_of(const std::vector<GemmFitGpu>& gpus) {
  Eigen::VectorXd start(kShared + kLocal * static_cast<Eigen::Index>(gpus.size()));
  for (int i = 0; i < kShared; ++i) start(i) = kGemmStart[i];
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    start(global_index(kShared, g)) = 0.1;
    start(global_index(kShared + 1, g)) = std::log(gpus[g].floor_seconds * 1e6);
  }
  return start;
}

}  // namespace

GemmFit fit_gemm(const std::vector<GemmFitGpu>& gpus, const std::vector<GemmSample>& samples) {
  LeastAbsoluteProblem problem;
  problem.rows = samples.size();
  for (const GemmSample& sample : samples) problem.weights.push_back(sample.weight);
  problem.start = start_of(gpus);
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                         RowResidual& out) {
    residual_of(samples[row], gpus[samples[row].gpu].traits, parameters, derivatives, out);
  };
  const FitReport report = fit_least_absolute(problem);
  GemmFit fit{.mean_absolute = report.mean_absolute};
  fit.shared = GemmParameters<double>::from_unconstrained(
      std::span<const double>(report.parameters.data(), kShared));
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    fit.slowdown.push_back(report.parameters(global_index(kShared, g)));
    fit.floor.push_back(std::exp(report.parameters(global_index(kShared + 1, g))) * 1e-6);
  }
  return fit;
}

}  // namespace tessera
