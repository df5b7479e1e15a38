#include "lab/fit/fp32/gemm_fit.h"

#include <cmath>

#include "lab/fit/dual.h"
#include "lab/fit/least_absolute.h"

namespace tessera {
namespace {

using At = GemmLayoutOfParameters;
// A family's menu and the shared one only ever appear as a sum, so their derivatives are equal.
constexpr int kSlowdown = At::kShared + At::kMenu, kFloor = kSlowdown + 1;
using Gradient = Dual<kFloor + 1>;

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

int gpu_index(int gpu) {
  return kFirstGpu + 2 * gpu;
}
int menu_index(SgemmFamily family) {
  return At::kFamilyMenu + static_cast<int>(family) * At::kMenu;
}

/// Parameters of all rows: constrained once per vector of unconstrained ones.
template <class T>
struct RowParameters {
  GemmParameters<T> shared;
  std::array<TileMenu<T>, kSgemmFamilies> menus;
};

RowParameters<double> row_parameters(const Eigen::VectorXd& parameters) {
  const std::span<const double> x(parameters.data(), static_cast<std::size_t>(parameters.size()));
  RowParameters<double> rows{.shared = GemmParameters<double>::from_unconstrained(x), .menus = {}};
  for (std::size_t family = 0; family < kSgemmFamilies; ++family)
    rows.menus[family] = TileMenu<double>::from_unconstrained(
        x.subspan(At::kSharedMenu, At::kMenu),
        x.subspan(menu_index(static_cast<SgemmFamily>(family)), At::kMenu));
  return rows;
}

RowParameters<Gradient> row_gradients(const Eigen::VectorXd& parameters) {
  std::array<Gradient, At::kFamilyMenu> x;
  for (int i = 0; i < At::kFamilyMenu; ++i) x[i] = Gradient::variable(parameters(i), i);
  const std::span<const Gradient> all(x);
  RowParameters<Gradient> rows{.shared = GemmParameters<Gradient>::from_unconstrained(all),
                               .menus = {}};
  for (std::size_t family = 0; family < kSgemmFamilies; ++family) {
    std::array<Gradient, At::kMenu> own;
    for (int i = 0; i < At::kMenu; ++i)
      own[i] = parameters(menu_index(static_cast<SgemmFamily>(family)) + i);
    rows.menus[family] =
        TileMenu<Gradient>::from_unconstrained(all.subspan(At::kSharedMenu, At::kMenu), own);
  }
  return rows;
}

/// Residuals of all samples under one vector of parameters at a time.
class GemmResiduals {
 public:
  GemmResiduals(const std::vector<GemmFitGpu>& gpus, const std::vector<GemmSample>& samples)
      : gpus_(gpus), samples_(samples) {}

  void prepare(const Eigen::VectorXd& parameters) {
    values_ = row_parameters(parameters);
    gradients_ = row_gradients(parameters);
  }
  void residual(std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                RowResidual& out) const {
    const GemmSample& sample = samples_[row];
    const GpuTraits& gpu = gpus_[sample.gpu].traits;
    const auto family = static_cast<std::size_t>(gpu.family);
    const double slowdown = parameters(gpu_index(sample.gpu));
    const double floor = parameters(gpu_index(sample.gpu) + 1);
    if (!derivatives) {
      out.value =
          gemm_residual(sample, gpu, values_.shared, values_.menus[family], slowdown, floor);
      return;
    }
    const Gradient residual =
        gemm_residual(sample, gpu, gradients_.shared, gradients_.menus[family],
                      Gradient::variable(slowdown, kSlowdown), Gradient::variable(floor, kFloor));
    out.value = residual.value;
    out.derivatives.clear();
    const auto add = [&](int parameter, int i) {
      out.derivatives.push_back({parameter, residual.derivatives(i)});
    };
    for (int i = 0; i < kSlowdown; ++i) add(i, i);
    for (int i = 0; i < At::kMenu; ++i) add(menu_index(gpu.family) + i, At::kSharedMenu + i);
    add(gpu_index(sample.gpu), kSlowdown);
    add(gpu_index(sample.gpu) + 1, kFloor);
  }

 private:
  const std::vector<GemmFitGpu>& gpus_;
  const std::vector<GemmSample>& samples_;
  RowParameters<double> values_;
  RowParameters<Gradient> gradients_;
};

/// Holds parameters [first, first + count) at `value`.
void pin(LeastAbsoluteProblem& problem, int first, int count, double value) {
  constexpr double kImmovable = 1e9;
  problem.start.segment(first, count).setConstant(value);
  problem.pull.segment(first, count).setConstant(kImmovable);
}

/// Pins the parameters of an ingredient where it has no effect.
void leave_out(Ingredient ingredient, LeastAbsoluteProblem& problem) {
  constexpr double kNever = 40, kNone = -40;  // of a softplus or log, and of a sigmoid or log
  constexpr int kSplitSeconds = 3, kStrides = 4, kMisaligned = 9;
  switch (ingredient) {
    case Ingredient::tile_menu:
      pin(problem, At::kFamilyMenu, kFamilies * At::kMenu, 0);
      return pin(problem, At::kSharedMenu + 1, At::kMenu - 1, kNever);
    case Ingredient::family_menus:
      return pin(problem, At::kFamilyMenu, kFamilies * At::kMenu, 0);
    case Ingredient::split_k:
      return pin(problem, kSplitSeconds, 1, kNever);
    case Ingredient::whole_waves:
      for (int family = 0; family < kFamilies; ++family)
        pin(problem, At::kFamilyMenu + family * At::kMenu, 1, 0);
      return pin(problem, At::kSharedMenu, 1, kNone);
    case Ingredient::row_distance:
      return pin(problem, kStrides, 2, kNone);
    case Ingredient::alignment:
      return pin(problem, kMisaligned, 2, 0);
    case Ingredient::anomalous_short:
    case Ingredient::short_calls:
      return;  // choices of samples
  }
}

LeastAbsoluteProblem problem_of(const std::vector<GemmFitGpu>& gpus,
                                const std::vector<GemmSample>& samples, GemmResiduals& residuals) {
  const Eigen::Index parameters = kFirstGpu + 2 * static_cast<Eigen::Index>(gpus.size());
  LeastAbsoluteProblem problem = problem_over(samples, parameters, residuals);
  for (int i = 0; i < At::kFamilyMenu; ++i) problem.start(i) = kStart[i];
  problem.pull.segment(At::kFamilyMenu, kFamilies * At::kMenu).setConstant(kFamilyPull);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const int first = gpu_index(static_cast<int>(g));
    problem.start(first) = kStartSlowdown;
    problem.start(first + 1) = std::log(gpus[g].floor_seconds * 1e6);
    problem.pull(first + 1) = kFloorPull;
  }
  return problem;
}

}  // namespace

GemmFit fit_gemm(const std::vector<GemmFitGpu>& gpus, const std::vector<GemmSample>& samples,
                 LeftOutIngredient without) {
  GemmResiduals residuals(gpus, samples);
  LeastAbsoluteProblem problem = problem_of(gpus, samples, residuals);
  if (without) leave_out(*without, problem);
  const FitReport report = fit_least_absolute(problem);
  const RowParameters<double> parameters = row_parameters(report.parameters);
  GemmFit fit{.mean_absolute = report.mean_absolute};
  fit.weights = {.shared = parameters.shared, .menus = parameters.menus};
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const int first = gpu_index(static_cast<int>(g));
    fit.slowdown.push_back(report.parameters(first));
    fit.floor.push_back(std::exp(report.parameters(first + 1)) * 1e-6);
  }
  return fit;
}

}  // namespace tessera
