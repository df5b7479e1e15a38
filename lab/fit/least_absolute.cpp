#include "lab/fit/least_absolute.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera {
namespace {

// Residuals (log of time) below this count as squares: 2 % is within the repeatability of a timing.
constexpr double kQuadraticZone = 0.02;
constexpr double kConverged = 1e-6;  ///< relative gain of one step that ends the fit

struct NormalEquations {
  Eigen::MatrixXd hessian;
  Eigen::VectorXd gradient;
};

double huber(double residual) {
  const double size = std::abs(residual);
  return size < kQuadraticZone ? 0.5 * size * size / kQuadraticZone : size - 0.5 * kQuadraticZone;
}

Eigen::VectorXd pull_strength(const LeastAbsoluteProblem& problem) {
  return problem.pull * std::accumulate(problem.weights.begin(), problem.weights.end(), 0.0);
}

void prepare(const LeastAbsoluteProblem& problem, const Eigen::VectorXd& parameters) {
  if (problem.prepare) problem.prepare(parameters);
}

double loss(const LeastAbsoluteProblem& problem, const Eigen::VectorXd& parameters) {
  RowResidual row;
  const Eigen::ArrayXd moved = parameters - problem.start;
  double sum = 0.5 * (pull_strength(problem).array() * moved.square()).sum();
  prepare(problem, parameters);
  for (std::size_t i = 0; i < problem.rows; ++i) {
    problem.residual(i, parameters, false, row);
    sum += problem.weights[i] * huber(row.value);
  }
  return sum;
}

/// Products of the derivatives of rows that depend on the same parameters, added up densely before
/// they go to their places.
class RowGroup {
 public:
  bool takes(const RowResidual& row) const {
    return std::ranges::equal(row.derivatives, parameters_, {}, &SensitivityEntry::parameter);
  }
  void start(const RowResidual& row) {
    parameters_.clear();
    for (const auto& entry : row.derivatives) parameters_.push_back(entry.parameter);
    const auto n = static_cast<Eigen::Index>(parameters_.size());
    products_.setZero(n, n);
    gradient_.setZero(n);
    derivatives_.resize(n);
  }
  void add(const RowResidual& row, double weight) {
    for (Eigen::Index i = 0; i < derivatives_.size(); ++i)
      derivatives_(i) = row.derivatives[i].value;
    gradient_ += (weight * row.value) * derivatives_;
    for (Eigen::Index i = 0; i < derivatives_.size(); ++i) {
      const Eigen::Index n = derivatives_.size() - i;
      products_.col(i).tail(n) += (weight * derivatives_(i)) * derivatives_.tail(n);
    }
  }
  void move_to(NormalEquations& equations) const {
    for (Eigen::Index i = 0; i < derivatives_.size(); ++i) {
      equations.gradient(parameters_[i]) += gradient_(i);
      for (Eigen::Index j = 0; j < derivatives_.size(); ++j)
        equations.hessian(parameters_[i], parameters_[j]) +=
            products_(std::max(i, j), std::min(i, j));
    }
  }

 private:
  std::vector<int> parameters_;
  Eigen::MatrixXd products_;  ///< below and on the diagonal
  Eigen::VectorXd gradient_, derivatives_;
};

NormalEquations normal_equations(const LeastAbsoluteProblem& problem,
                                 const Eigen::VectorXd& parameters) {
  const Eigen::VectorXd pull = pull_strength(problem);
  NormalEquations equations{pull.asDiagonal(), pull.cwiseProduct(parameters - problem.start)};
  RowGroup group;
  RowResidual row;
  prepare(problem, parameters);
  for (std::size_t i = 0; i < problem.rows; ++i) {
    problem.residual(i, parameters, true, row);
    if (!group.takes(row)) {
      group.move_to(equations);
      group.start(row);
    }
    group.add(row, problem.weights[i] / std::max(std::abs(row.value), kQuadraticZone));
  }
  group.move_to(equations);
  return equations;
}

Eigen::VectorXd damped_step(const NormalEquations& equations, double damping) {
  Eigen::MatrixXd damped = equations.hessian;
  damped.diagonal() *= 1 + damping;
  return damped.ldlt().solve(-equations.gradient);
}

double mean_absolute(const LeastAbsoluteProblem& problem, const Eigen::VectorXd& parameters) {
  RowResidual row;
  double sum = 0, weights = 0;
  prepare(problem, parameters);
  for (std::size_t i = 0; i < problem.rows; ++i) {
    problem.residual(i, parameters, false, row);
    sum += problem.weights[i] * std::abs(row.value);
    weights += problem.weights[i];
  }
  return weights > 0 ? sum / weights : 0;
}

}  // namespace

FitReport fit_least_absolute(const LeastAbsoluteProblem& problem, int max_iterations) {
  FitReport report{.parameters = problem.start};
  double current = loss(problem, report.parameters);
  double damping = 1e-2;
  while (report.iterations < max_iterations && damping < 1e8) {
    const NormalEquations equations = normal_equations(problem, report.parameters);
    ++report.iterations;
    bool converged = false;
    while (damping < 1e8) {
      const Eigen::VectorXd candidate = report.parameters + damped_step(equations, damping);
      const double next = loss(problem, candidate);
      if (!(next < current)) {
        damping *= 8;
        continue;
      }
      converged = current - next < kConverged * current;
      report.parameters = candidate;
      current = next;
      damping = std::max(damping / 8, 1e-6);
      break;
    }
    if (converged) break;
  }
  report.mean_absolute = mean_absolute(problem, report.parameters);
  return report;
}

}  // namespace tessera
