#include "predictor/training/least_absolute.h"

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

double loss(const LeastAbsoluteProblem& problem, const Eigen::VectorXd& parameters) {
  RowResidual row;
  const Eigen::ArrayXd moved = parameters - problem.start;
  double sum = 0.5 * (pull_strength(problem).array() * moved.square()).sum();
  for (std::size_t i = 0; i < problem.rows; ++i) {
    problem.residual(i, parameters, false, row);
    sum += problem.weights[i] * huber(row.value);
  }
  return sum;
}

NormalEquations normal_equations(const LeastAbsoluteProblem& problem,
                                 const Eigen::VectorXd& parameters) {
  const Eigen::VectorXd pull = pull_strength(problem);
  NormalEquations equations{pull.asDiagonal(), pull.cwiseProduct(parameters - problem.start)};
  RowResidual row;
  for (std::size_t i = 0; i < problem.rows; ++i) {
    problem.residual(i, parameters, true, row);
    const double weight = problem.weights[i] / std::max(std::abs(row.value), kQuadraticZone);
    for (const auto& a : row.derivatives) {
      equations.gradient(a.parameter) += weight * a.value * row.value;
      for (const auto& b : row.derivatives)
        equations.hessian(a.parameter, b.parameter) += weight * a.value * b.value;
    }
  }
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
