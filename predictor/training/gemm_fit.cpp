#include "predictor/training/gemm_fit.h"

#include <cmath>

#include "predictor/training/least_absolute.h"

namespace tessera {
namespace {

using At = GemmLayoutOfParameters;
using Gradient = Dual<At::kCount>;

constexpr int kFamilies = static_cast<int>(kSgemmFamilies);
constexpr int kFirstGpu = At::kFamilyMenu + kFamilies * At::kMenu;
constexpr double kStartSlowdown = 0.1;
// Families deviate from the common menu only where their data insist.
constexpr double kFamilyPull = 1e-3;
// The launch floor is what the fastest calls took; rows above it cannot tell better.
constexpr double kFloorPull = 0.1;

/// A nearly perfect card with plausible tiles: norm, prologue, memory, split, strides (5),
/// misalignment (2), launch; then quantisation and tiles.
constexpr std::array<double, At::kFamilyMenu> kStart{1, 3.5, -1.5, 1,  -1, -3, 14, 0,  0, 0,
                                                     0, 0,   0,    -2, -2, -1, -1, -1, 0};

/// Number in the vector of all parameters of parameter `i` of a residual.
int global_index(int i, const GpuTraits& traits, int gpu) {
  if (i < At::kFamilyMenu) return i;
  if (i < At::kSlowdown) return i + static_cast<int>(traits.family) * At::kMenu;
  return kFirstGpu + 2 * gpu + (i - At::kSlowdown);
}

void residual_of(const GemmSample& sample, const GpuTraits& gpu, const Eigen::VectorXd& parameters,
                 bool derivatives, RowResidual& out) {
  std::array<double, At::kCount> x;
  for (int i = 0; i < At::kCount; ++i) x[i] = parameters(global_index(i, gpu, sample.gpu));
  out.derivatives.clear();
  if (!derivatives) {
    out.value = gemm_residual<double>(sample, gpu, x);
    return;
  }
  std::array<Gradient, At::kCount> duals;
  for (int i = 0; i < At::kCount; ++i) duals[i] = Gradient::variable(x[i], i);
  const Gradient residual = gemm_residual<Gradient>(sample, gpu, duals);
  out.value = residual.value;
  for (int i = 0; i < At::kCount; ++i)
    out.derivatives.push_back({global_index(i, gpu, sample.gpu), residual.derivatives(i)});
}

LeastAbsoluteProblem problem_of(const std::vector<GemmFitGpu>& gpus,
                                const std::vector<GemmSample>& samples) {
  LeastAbsoluteProblem problem;
  problem.rows = samples.size();
  for (const GemmSample& sample : samples) problem.weights.push_back(sample.weight);
  problem.start = Eigen::VectorXd::Zero(kFirstGpu + 2 * static_cast<Eigen::Index>(gpus.size()));
  problem.pull = Eigen::VectorXd::Constant(problem.start.size(), kWeakPull);
  for (int i = 0; i < At::kFamilyMenu; ++i) problem.start(i) = kStart[i];
  problem.pull.segment(At::kFamilyMenu, kFamilies * At::kMenu).setConstant(kFamilyPull);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto first = kFirstGpu + 2 * static_cast<Eigen::Index>(g);
    problem.start(first) = kStartSlowdown;
    problem.start(first + 1) = std::log(gpus[g].floor_seconds * 1e6);
    problem.pull(first + 1) = kFloorPull;
  }
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                         RowResidual& out) {
    residual_of(samples[row], gpus[samples[row].gpu].traits, parameters, derivatives, out);
  };
  return problem;
}

}  // namespace

GemmFit fit_gemm(const std::vector<GemmFitGpu>& gpus, const std::vector<GemmSample>& samples) {
  const FitReport report = fit_least_absolute(problem_of(gpus, samples));
  const std::span<const double> x(report.parameters.data(),
                                  static_cast<std::size_t>(report.parameters.size()));
  GemmFit fit{.mean_absolute = report.mean_absolute};
  fit.weights.shared = GemmParameters<double>::from_unconstrained(x);
  for (std::size_t family = 0; family < kSgemmFamilies; ++family)
    fit.weights.menus[family] = TileMenu<double>::from_unconstrained(
        x.subspan(At::kSharedMenu, At::kMenu),
        x.subspan(At::kFamilyMenu + family * At::kMenu, At::kMenu));
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    fit.slowdown.push_back(x[kFirstGpu + 2 * g]);
    fit.floor.push_back(std::exp(x[kFirstGpu + 2 * g + 1]) * 1e-6);
  }
  return fit;
}

}  // namespace tessera
