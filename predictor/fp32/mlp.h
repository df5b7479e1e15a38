#pragma once

#include <Eigen/Core>
#include <vector>

#include "predictor/fp32/mlp_weights.h"

namespace tessera {

/// Outputs [units, columns] for inputs [units, columns]; a column is one example.
Eigen::MatrixXd mlp_forward(const MlpWeights& mlp, const Eigen::MatrixXd& inputs);

/// Gradient of a loss by the weights, in the order of `values`; `output_gradient` [outputs,
/// columns] holds the loss's derivative by the outputs that belong to `inputs`.
std::vector<double> mlp_gradient(const MlpWeights& mlp, const Eigen::MatrixXd& inputs,
                                 const Eigen::MatrixXd& output_gradient);

}  // namespace tessera
