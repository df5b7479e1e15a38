#pragma once

#include <cstddef>
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

}  // namespace tessera
