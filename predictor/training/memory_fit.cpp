#include "predictor/training/memory_fit.h"

#include <cmath>

#include "predictor/training/least_absolute.h"

namespace tessera {
namespace {

constexpr int kShared = MemoryParameters<double>::kCount;
constexpr int kLocal = 2;  ///< that one residual sees: slowdown of the GPU, floor of GPU and class
constexpr int kPerGpu = 1 + static_cast<int>(kMemoryClasses);
using Gradient = Dual<kShared + kLocal>;

int slowdown_index(int gpu) {
  return kShared + kPerGpu * gpu;
}
int floor_index(int gpu, std::size_t memory_class) {
  return slowdown_index(gpu) + 1 + static_cast<int>(memory_class);
}

int global_index(int i, const MemorySample& sample) {
  if (i < kShared) return i;
  if (i == kShared) return slowdown_index(sample.gpu);
  return floor_index(sample.gpu, static_cast<std::size_t>(sample.memory_class));
}

void residual_of(const MemorySample& sample, const GpuTraits& gpu,
                 const Eigen::VectorXd& parameters, bool derivatives, RowResidual& out) {
  std::array<Gradient, kShared + kLocal> duals;
  std::array<double, kShared + kLocal> x;
  for (int i = 0; i < kShared + kLocal; ++i) x[i] = parameters(global_index(i, sample));
  out.derivatives.clear();
  if (!derivatives) {
    out.value = memory_residual<double>(sample, gpu, x);
    return;
  }
  for (int i = 0; i < kShared + kLocal; ++i) duals[i] = Gradient::variable(x[i], i);
  const Gradient residual = memory_residual<Gradient>(sample, gpu, duals);
  out.value = residual.value;
  for (int i = 0; i < kShared + kLocal; ++i)
    out.derivatives.push_back({global_index(i, sample), residual.derivatives(i)});
}

Eigen::VectorXd start_of(const std::vector<MemoryFitGpu>& gpus) {
  Eigen::VectorXd start(kShared + kPerGpu * static_cast<Eigen::Index>(gpus.size()));
  for (int i = 0; i < kShared; ++i) start(i) = kMemoryStart[i];
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    start(slowdown_index(g)) = 0.2;
    for (std::size_t c = 0; c < kMemoryClasses; ++c)
      start(floor_index(g, c)) = std::log(gpus[g].floor_seconds[c] * 1e6);
  }
  return start;
}

}  // namespace

MemoryFit fit_memory(const std::vector<MemoryFitGpu>& gpus,
                     const std::vector<MemorySample>& samples) {
  LeastAbsoluteProblem problem;
  problem.rows = samples.size();
  for (const MemorySample& sample : samples) problem.weights.push_back(sample.weight);
  problem.start = start_of(gpus);
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                         RowResidual& out) {
    residual_of(samples[row], gpus[samples[row].gpu].traits, parameters, derivatives, out);
  };
  const FitReport report = fit_least_absolute(problem);
  MemoryFit fit{.mean_absolute = report.mean_absolute};
  fit.shared = MemoryParameters<double>::from_unconstrained(
      std::span<const double>(report.parameters.data(), kShared));
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    fit.slowdown.push_back(report.parameters(slowdown_index(g)));
    std::array<double, kMemoryClasses> floor{};
    for (std::size_t c = 0; c < kMemoryClasses; ++c)
      floor[c] = std::exp(report.parameters(floor_index(g, c))) * 1e-6;
    fit.floor.push_back(floor);
  }
  return fit;
}

}  // namespace tessera
