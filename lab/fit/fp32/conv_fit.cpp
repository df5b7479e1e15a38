#include "lab/fit/fp32/conv_fit.h"

#include <cmath>

#include "lab/fit/dual.h"
#include "lab/fit/least_absolute.h"

namespace tessera {
namespace {

using At = ConvolutionLayoutOfParameters;
using Gradient = Dual<At::kCount>;

constexpr int kOwn = At::kCount - At::kShared;  ///< parameters of each GPU
// The launch floor is what the fastest call took; rows above it cannot tell better.
constexpr double kFloorPull = 0.1;
constexpr double kStartSlowdown = 0.1;
constexpr double kStartDrift = 4.5;  ///< log of 90 us

/// A nearly perfect card: norm, prologue, memory, transform, implicit, fused, stage, launch,
/// quantisation, tiles.
constexpr std::array<double, At::kShared> kStart{1, 3, -1.5, -1.5, 0, 0, 1, 0, -2, -1, -1};

/// Number in the vector of all parameters of parameter `i` of a residual.
int global_index(int i, int gpu) {
  return i < At::kShared ? i : i + kOwn * gpu;
}

void residual_of(const ConvolutionSample& sample, const GpuTraits& gpu,
                 const Eigen::VectorXd& parameters, bool derivatives, RowResidual& out) {
  std::array<double, At::kCount> x;
  for (int i = 0; i < At::kCount; ++i) x[i] = parameters(global_index(i, sample.gpu));
  out.derivatives.clear();
  if (!derivatives) {
    out.value = convolution_residual<double>(sample, gpu, x);
    return;
  }
  std::array<Gradient, At::kCount> duals;
  for (int i = 0; i < At::kCount; ++i) duals[i] = Gradient::variable(x[i], i);
  const Gradient residual = convolution_residual<Gradient>(sample, gpu, duals);
  out.value = residual.value;
  for (int i = 0; i < At::kCount; ++i)
    out.derivatives.push_back({global_index(i, sample.gpu), residual.derivatives(i)});
}

LeastAbsoluteProblem problem_of(const std::vector<ConvolutionFitGpu>& gpus,
                                const std::vector<ConvolutionSample>& samples) {
  LeastAbsoluteProblem problem;
  problem.rows = samples.size();
  for (const ConvolutionSample& sample : samples) problem.weights.push_back(sample.weight);
  problem.start = Eigen::VectorXd::Zero(At::kShared + kOwn * static_cast<int>(gpus.size()));
  problem.pull = Eigen::VectorXd::Constant(problem.start.size(), kWeakPull);
  for (int i = 0; i < At::kShared; ++i) problem.start(i) = kStart[i];
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    const int floor = global_index(At::kFloor, g);
    problem.start(global_index(At::kSlowdown, g)) = kStartSlowdown;
    problem.start(floor) = std::log(gpus[static_cast<std::size_t>(g)].floor_seconds * 1e6);
    problem.pull(floor) = kFloorPull;
    problem.start(global_index(At::kDrift, g)) = kStartDrift;
  }
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                         RowResidual& out) {
    residual_of(samples[row], gpus[static_cast<std::size_t>(samples[row].gpu)].traits, parameters,
                derivatives, out);
  };
  return problem;
}

}  // namespace

ConvolutionFit fit_convolution_model(const std::vector<ConvolutionFitGpu>& gpus,
                                     const std::vector<ConvolutionSample>& samples) {
  const FitReport report = fit_least_absolute(problem_of(gpus, samples));
  const std::span<const double> x(report.parameters.data(),
                                  static_cast<std::size_t>(report.parameters.size()));
  ConvolutionFit fit{.shared = ConvolutionParameters<double>::from_unconstrained(x),
                     .mean_absolute = report.mean_absolute};
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    fit.slowdown.push_back(report.parameters(global_index(At::kSlowdown, g)));
    fit.floor.push_back(std::exp(report.parameters(global_index(At::kFloor, g))) * 1e-6);
    fit.drift.push_back(std::exp(report.parameters(global_index(At::kDrift, g))) * 1e-6);
  }
  return fit;
}

}  // namespace tessera
