#include "predictor/training/memory_fit.h"

#include <cmath>

#include "predictor/training/least_absolute.h"

namespace tessera {
namespace {

constexpr int kShared = MemoryParameters<double>::kCount;
constexpr int kLocal = 2;  ///< slowdown and floor of one GPU and class
constexpr int kClasses = static_cast<int>(kMemoryClasses);
using Gradient = Dual<kShared + kLocal>;

/// L2 (3), bytes per row (2), wide softmax, launch (3).
constexpr std::array<double, kShared> kStart{0, 0, .3, 3, 5, 0, 0, 0, 0};
constexpr double kStartSlowdown = 0.2;
// The launch floor is what the fastest calls took; rows above it cannot tell better.
constexpr double kFloorPull = 0.1;

int local_index(int gpu, std::size_t memory_class) {
  return kShared + kLocal * (kClasses * gpu + static_cast<int>(memory_class));
}

int global_index(int i, const TrafficSample& sample) {
  if (i < kShared) return i;
  return local_index(sample.gpu, static_cast<std::size_t>(sample.shape.memory_class)) + i - kShared;
}

void residual_of(const TrafficSample& sample, const GpuTraits& gpu,
                 const Eigen::VectorXd& parameters, bool derivatives, RowResidual& out) {
  std::array<double, kShared + kLocal> x;
  for (int i = 0; i < kShared + kLocal; ++i) x[i] = parameters(global_index(i, sample));
  out.derivatives.clear();
  if (!derivatives) {
    out.value = memory_residual<double>(sample, gpu, x);
    return;
  }
  std::array<Gradient, kShared + kLocal> duals;
  for (int i = 0; i < kShared + kLocal; ++i) duals[i] = Gradient::variable(x[i], i);
  const Gradient residual = memory_residual<Gradient>(sample, gpu, duals);
  out.value = residual.value;
  for (int i = 0; i < kShared + kLocal; ++i)
    out.derivatives.push_back({global_index(i, sample), residual.derivatives(i)});
}

LeastAbsoluteProblem problem_of(const std::vector<MemoryFitGpu>& gpus,
                                const std::vector<TrafficSample>& samples) {
  LeastAbsoluteProblem problem;
  problem.rows = samples.size();
  for (const TrafficSample& sample : samples) problem.weights.push_back(sample.weight);
  problem.start = Eigen::VectorXd::Zero(local_index(static_cast<int>(gpus.size()), 0));
  problem.pull = Eigen::VectorXd::Constant(problem.start.size(), kWeakPull);
  for (int i = 0; i < kShared; ++i) problem.start(i) = kStart[i];
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      problem.start(local_index(g, c)) = kStartSlowdown;
      problem.start(local_index(g, c) + 1) = std::log(gpus[g].floor_seconds[c] * 1e6);
      problem.pull(local_index(g, c) + 1) = kFloorPull;
    }
  }
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                         RowResidual& out) {
    residual_of(samples[row], gpus[samples[row].gpu].traits, parameters, derivatives, out);
  };
  return problem;
}

}  // namespace

MemoryFit fit_memory(const std::vector<MemoryFitGpu>& gpus,
                     const std::vector<TrafficSample>& samples) {
  const FitReport report = fit_least_absolute(problem_of(gpus, samples));
  MemoryFit fit{.mean_absolute = report.mean_absolute};
  fit.shared = MemoryParameters<double>::from_unconstrained(
      std::span<const double>(report.parameters.data(), kShared));
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    std::array<double, kMemoryClasses> slowdown{}, floor{};
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      slowdown[c] = report.parameters(local_index(g, c));
      floor[c] = std::exp(report.parameters(local_index(g, c) + 1)) * 1e-6;
    }
    fit.slowdown.push_back(slowdown);
    fit.floor.push_back(floor);
  }
  return fit;
}

}  // namespace tessera
