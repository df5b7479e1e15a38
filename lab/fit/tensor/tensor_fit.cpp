#include "lab/fit/tensor/tensor_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lab/fit/dual.h"
#include "lab/fit/least_absolute.h"

namespace tessera {
namespace {

using At = TensorLayoutOfParameters;
using Gradient = Dual<At::kCount>;

constexpr std::size_t kRowsPerStack = 5000;
constexpr int kPerGpu = TensorGpuEffect<double>::kCount;
constexpr int kPerStack = TensorStackEffect<double>::kCount;
// What a library adds to its GPU's own slowdowns is small; their sum is what the data determine.
constexpr double kStackPull = 0.02;
constexpr double kGpuPull = 1e-3;  // the power-limited rate needs long calls

// Plausible values: prologue 200, split 2.4 us, norm 3.6, L2 centre, slope .5, gain .7; tiles.
constexpr std::array<double, At::kShared> kStartShared{5.3,  0.9,  0.96, -1,  -0.6, -0.4, -1.0,
                                                       -0.7, -0.2, 0.2,  0.2, 0.25, 0.3,  0.3,
                                                       0.3,  0.4,  0.5,  0.8, 1.0,  1.5,  1.7};
constexpr std::array<double, kPerGpu> kStartGpu{0.07, 0.15, 0.15, 0.04};
constexpr std::array<double, kPerStack> kStartStack{0, 0.9, 0, 0};  // half of whole waves; 2.5 us

/// Of one vector of parameters, constrained once for all rows.
template <class T>
struct Constrained {
  TensorParameters<T> shared;
  std::vector<TensorGpuEffect<T>> gpus;
  std::vector<TensorStackEffect<T>> stacks;
};

class Layout {
 public:
  explicit Layout(const TensorData& data)
      : gpus_(static_cast<int>(data.gpus.size())), stacks_(static_cast<int>(data.stacks.size())) {}
  int gpu(int i) const { return At::kShared + i * kPerGpu; }
  int stack(int i) const { return gpu(gpus_) + i * kPerStack; }
  int count() const { return stack(stacks_); }

  /// `number(position in the vector, place in a residual)`.
  template <class T, class Number>
  Constrained<T> constrained(const Number& number) const {
    const auto part = [&]<int kSize>(std::integral_constant<int, kSize>, int first, int place) {
      std::array<T, kSize> x;
      for (int i = 0; i < kSize; ++i) x[i] = number(first + i, place + i);
      return x;
    };
    Constrained<T> result;
    result.shared = TensorParameters<T>::from_unconstrained(
        part(std::integral_constant<int, At::kShared>(), 0, 0));
    for (int i = 0; i < gpus_; ++i)
      result.gpus.push_back(TensorGpuEffect<T>::from_values(
          part(std::integral_constant<int, kPerGpu>(), gpu(i), At::kGpu)));
    for (int i = 0; i < stacks_; ++i)
      result.stacks.push_back(TensorStackEffect<T>::from_unconstrained(
          part(std::integral_constant<int, kPerStack>(), stack(i), At::kStack)));
    return result;
  }

 private:
  int gpus_, stacks_;
};

/// Residuals of all samples under one vector of parameters at a time.
class TensorResiduals {
 public:
  TensorResiduals(const TensorData& data, const std::vector<TensorSample>& samples)
      : data_(data), samples_(samples), layout_(data) {}

  void prepare(const Eigen::VectorXd& x) {
    values_ = layout_.constrained<double>([&](int position, int) { return x(position); });
    gradients_ = layout_.constrained<Gradient>(
        [&](int position, int place) { return Gradient::variable(x(position), place); });
  }
  void residual(std::size_t row, bool derivatives, RowResidual& out) const {
    const TensorSample& sample = samples_[row];
    const TensorStack& stack = data_.stacks[sample.stack];
    if (!derivatives) {
      out.value = tensor_residual(sample, stack.traits, values_.shared, values_.gpus[stack.gpu],
                                  values_.stacks[sample.stack]);
      return;
    }
    const Gradient residual =
        tensor_residual(sample, stack.traits, gradients_.shared, gradients_.gpus[stack.gpu],
                        gradients_.stacks[sample.stack]);
    out.value = residual.value;
    out.derivatives.clear();
    const auto add = [&](int parameter, int place, int count) {
      for (int i = 0; i < count; ++i)
        out.derivatives.push_back({parameter + i, residual.derivatives(place + i)});
    };
    add(0, 0, At::kShared);
    add(layout_.gpu(stack.gpu), At::kGpu, kPerGpu);
    add(layout_.stack(sample.stack), At::kStack, kPerStack);
  }

 private:
  const TensorData& data_;
  const std::vector<TensorSample>& samples_;
  Layout layout_;
  Constrained<double> values_;
  Constrained<Gradient> gradients_;
};

/// Spreads the choice of rows over sizes without regard to their order in the file.
std::uint64_t scattered(const TensorShape& s) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const double size : {s.m, s.n, s.k}) {
    hash = (hash ^ static_cast<std::uint64_t>(size)) * 0xbf58476d1ce4e5b9ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

struct ChosenRows {
  std::vector<TensorSample> samples;  ///< stack by stack
  std::vector<double> weights;
};

double importance(double seconds) {
  if (seconds < 10e-6) return 0.3;
  return seconds < 50e-6 ? 0.7 : 1.0;
}

ChosenRows chosen_rows(const TensorData& data, const std::vector<TensorSample>& samples) {
  ChosenRows rows;
  for (int stack = 0; stack < static_cast<int>(data.stacks.size()); ++stack) {
    std::vector<TensorSample> own =
        filtered(samples, [&](const TensorSample& sample) { return sample.stack == stack; });
    const double all = static_cast<double>(own.size());
    std::ranges::stable_sort(own, {},
                             [](const TensorSample& sample) { return scattered(sample.shape); });
    if (own.size() > kRowsPerStack) own.resize(kRowsPerStack);
    for (const TensorSample& sample : own)
      rows.weights.push_back(importance(sample.seconds) * std::sqrt(all) /
                             static_cast<double>(own.size()));
    rows.samples.insert(rows.samples.end(), own.begin(), own.end());
  }
  return rows;
}

LeastAbsoluteProblem problem_of(const TensorData& data, const ChosenRows& rows,
                                TensorResiduals& residuals) {
  const Layout layout(data);
  LeastAbsoluteProblem problem{.rows = rows.samples.size(), .weights = rows.weights};
  problem.start = Eigen::VectorXd::Zero(layout.count());
  problem.pull = Eigen::VectorXd::Constant(layout.count(), kWeakPull);
  const auto start = [&](int first, const auto& values) {
    for (const double value : values) problem.start(first++) = value;
  };
  start(0, kStartShared);
  for (int i = 0; i < static_cast<int>(data.gpus.size()); ++i) {
    start(layout.gpu(i), kStartGpu);
    problem.pull.segment(layout.gpu(i), kPerGpu).setConstant(kGpuPull);
  }
  for (int i = 0; i < static_cast<int>(data.stacks.size()); ++i) {
    start(layout.stack(i), kStartStack);
    problem.pull.segment(layout.stack(i) + 2, 2).setConstant(kStackPull);
  }
  problem.prepare = [&](const Eigen::VectorXd& x) { residuals.prepare(x); };
  problem.residual = [&](std::size_t row, const Eigen::VectorXd&, bool derivatives,
                         RowResidual& out) { residuals.residual(row, derivatives, out); };
  return problem;
}

}  // namespace

TensorFit fit_tensor_gemm(const TensorData& data, const std::vector<TensorSample>& samples) {
  const ChosenRows rows = chosen_rows(data, samples);
  TensorResiduals residuals(data, rows.samples);
  const FitReport report = fit_least_absolute(problem_of(data, rows, residuals));
  const auto fitted = Layout(data).constrained<double>(
      [&](int position, int) { return report.parameters(position); });
  return {.shared = fitted.shared,
          .gpus = fitted.gpus,
          .stacks = fitted.stacks,
          .mean_absolute = report.mean_absolute,
          .iterations = report.iterations,
          .rows = rows.samples.size()};
}

TensorGpuEffect<double> calibrated_tensor_gpu(const std::vector<TensorSample>& samples,
                                              const TensorTraits& traits,
                                              const TensorParameters<double>& shared,
                                              const TensorGpuEffect<double>& start,
                                              const TensorStackEffect<double>& stack,
                                              double sigma) {
  constexpr int kFitted = 3;  // compute, memory, cap
  // A kernel misses by about this much in log time once the GPU is known.
  constexpr double kKernelSigma = 0.06;
  using Few = Dual<kFitted>;
  const auto lifted = [](const auto& values) {
    std::array<Few, std::tuple_size_v<std::decay_t<decltype(values)>>> duals;
    std::ranges::copy(values, duals.begin());
    return duals;
  };
  const auto shared_values = TensorParameters<Few>::from_values(lifted(shared.values()));
  const auto stack_values = TensorStackEffect<Few>::from_values(lifted(stack.values()));
  LeastAbsoluteProblem problem{.rows = samples.size()};
  problem.weights.assign(samples.size(), 1.0);
  problem.start = Eigen::Vector3d(start.compute, start.memory, start.cap);
  // |r| / kKernelSigma per row against x^2 / (2 sigma^2).
  problem.pull = Eigen::VectorXd::Constant(
      kFitted, kKernelSigma / (sigma * sigma * static_cast<double>(samples.size())));
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& x, bool, RowResidual& out) {
    const TensorGpuEffect<Few> effect{Few::variable(x(0), 0), Few::variable(x(1), 1),
                                      Few::variable(x(2), 2), Few(start.cap_per_decade)};
    const Few residual = tensor_residual(samples[row], traits, shared_values, effect, stack_values);
    out.value = residual.value;
    out.derivatives.clear();
    for (int i = 0; i < kFitted; ++i) out.derivatives.push_back({i, residual.derivatives(i)});
  };
  const Eigen::VectorXd x = fit_least_absolute(problem).parameters;
  return {x(0), x(1), x(2), start.cap_per_decade};
}

}  // namespace tessera
