#pragma once

#include <Eigen/Core>
#include <vector>

namespace tessera {

/// Dense layers with tanh between them; weights as row-major [out][in] then biases [out], per
/// layer.
struct MlpWeights {
  std::vector<int> sizes;  ///< units per layer, input first
  std::vector<double> values;
};

/// Number of values that layers of `sizes` need.
std::size_t mlp_value_count(const std::vector<int>& sizes);

/// Outputs [units, columns] for inputs [units, columns]; a column is one example.
Eigen::MatrixXd mlp_forward(const MlpWeights& mlp, const Eigen::MatrixXd& inputs);

/// Gradient of a loss by the weights, in the order of `values`; `output_gradient` [outputs,
/// columns] holds the loss's derivative by the outputs that belong to `inputs`.
std::vector<double> mlp_gradient(const MlpWeights& mlp, const Eigen::MatrixXd& inputs,
                                 const Eigen::MatrixXd& output_gradient);

}  // namespace tessera
