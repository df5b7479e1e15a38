#include "lab/fit/fp32/memory_fit.h"

#include <cmath>

#include "lab/fit/dual.h"
#include "lab/fit/least_absolute.h"

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

MemoryParameters<double> shared_values(const Eigen::VectorXd& parameters) {
  return MemoryParameters<double>::from_unconstrained(
      std::span<const double>(parameters.data(), kShared));
}

MemoryParameters<Gradient> shared_gradients(const Eigen::VectorXd& parameters) {
  std::array<Gradient, kShared> x;
  for (int i = 0; i < kShared; ++i) x[i] = Gradient::variable(parameters(i), i);
  return MemoryParameters<Gradient>::from_unconstrained(x);
}

/// Residuals of all samples under one vector of parameters at a time.
class MemoryResiduals {
 public:
  MemoryResiduals(const std::vector<MemoryFitGpu>& gpus, const std::vector<TrafficSample>& samples)
      : gpus_(gpus), samples_(samples) {}

  void prepare(const Eigen::VectorXd& parameters) {
    values_ = shared_values(parameters);
    gradients_ = shared_gradients(parameters);
  }
  void residual(std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                RowResidual& out) const {
    const TrafficSample& sample = samples_[row];
    const GpuTraits& gpu = gpus_[sample.gpu].traits;
    const int local = local_index(sample.gpu, static_cast<std::size_t>(sample.shape.memory_class));
    const double slowdown = parameters(local), floor = parameters(local + 1);
    if (!derivatives) {
      out.value = memory_residual(sample, gpu, values_, slowdown, floor);
      return;
    }
    const Gradient residual =
        memory_residual(sample, gpu, gradients_, Gradient::variable(slowdown, kShared),
                        Gradient::variable(floor, kShared + 1));
    out.value = residual.value;
    out.derivatives.clear();
    for (int i = 0; i < kShared + kLocal; ++i)
      out.derivatives.push_back({i < kShared ? i : local + i - kShared, residual.derivatives(i)});
  }

 private:
  const std::vector<MemoryFitGpu>& gpus_;
  const std::vector<TrafficSample>& samples_;
  MemoryParameters<double> values_{};
  MemoryParameters<Gradient> gradients_{};
};

LeastAbsoluteProblem problem_of(const std::vector<MemoryFitGpu>& gpus,
                                const std::vector<TrafficSample>& samples,
                                MemoryResiduals& residuals) {
  const int parameters = local_index(static_cast<int>(gpus.size()), 0);
  LeastAbsoluteProblem problem = problem_over(samples, parameters, residuals);
  for (int i = 0; i < kShared; ++i) problem.start(i) = kStart[i];
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      problem.start(local_index(g, c)) = kStartSlowdown;
      problem.start(local_index(g, c) + 1) = std::log(gpus[g].floor_seconds[c] * 1e6);
      problem.pull(local_index(g, c) + 1) = kFloorPull;
    }
  }
  return problem;
}

}  // namespace

MemoryFit fit_memory(const std::vector<MemoryFitGpu>& gpus,
                     const std::vector<TrafficSample>& samples) {
  MemoryResiduals residuals(gpus, samples);
  const FitReport report = fit_least_absolute(problem_of(gpus, samples, residuals));
  MemoryFit fit{.shared = shared_values(report.parameters),
                .slowdown = {},
                .floor = {},
                .mean_absolute = report.mean_absolute};
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
