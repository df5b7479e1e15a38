#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <functional>
#include <vector>

namespace tessera {

/// The derivative of one row's residual by one parameter.
struct SensitivityEntry {
  int parameter = 0;
  double value = 0;
};

/// Residual of a row and its derivatives by the parameters that matter to it. Rows with the same
/// parameters in the same order are quickest one after another.
struct RowResidual {
  double value = 0;
  std::vector<SensitivityEntry> derivatives;
};

/// Keeps a parameter that the data do not determine where it started.
inline constexpr double kWeakPull = 1e-4;

/// sum over rows of weight * |residual|, plus a weak pull towards the start that keeps parameters
/// the data do not determine in place.
struct LeastAbsoluteProblem {
  std::size_t rows = 0;
  std::vector<double> weights;  ///< one per row, > 0
  Eigen::VectorXd start;
  Eigen::VectorXd pull;  ///< per parameter, relative to the sum of weights
  /// Called before rows are asked for under other `parameters`; may be empty.
  std::function<void(const Eigen::VectorXd& parameters)> prepare;
  /// Writes the residual of `row` under `parameters`; derivatives only where asked for.
  std::function<void(std::size_t row, const Eigen::VectorXd& parameters, bool derivatives,
                     RowResidual& out)>
      residual;
};

/// The problem of `samples` (each has a weight) with `parameters` that start at 0, weakly pulled.
/// `residuals` knows the samples: prepare() and residual() as above; it has to outlive the problem.
template <class Sample, class Residuals>
LeastAbsoluteProblem problem_over(const std::vector<Sample>& samples, Eigen::Index parameters,
                                  Residuals& residuals) {
  LeastAbsoluteProblem problem;
  problem.rows = samples.size();
  for (const Sample& sample : samples) problem.weights.push_back(sample.weight);
  problem.start = Eigen::VectorXd::Zero(parameters);
  problem.pull = Eigen::VectorXd::Constant(parameters, kWeakPull);
  problem.prepare = [&residuals](const Eigen::VectorXd& x) { residuals.prepare(x); };
  problem.residual = [&residuals](std::size_t row, const Eigen::VectorXd& x, bool derivatives,
                                  RowResidual& out) {
    residuals.residual(row, x, derivatives, out);
  };
  return problem;
}

struct FitReport {
  Eigen::VectorXd parameters;
  double mean_absolute = 0;  ///< weighted mean of |residual|
  int iterations = 0;
};

/// Levenberg-Marquardt on iteratively re-weighted squares: deterministic, rows in the order given.
FitReport fit_least_absolute(const LeastAbsoluteProblem& problem, int max_iterations = 40);

}  // namespace tessera
