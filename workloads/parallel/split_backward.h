#pragma once

#include <vector>

#include "workloads/graph/block.h"

namespace tessera {

/// A backward pass in the two parts of the zero-bubble schedules. Run one after the other they use
/// the memory that their operators say; what the second part reads stays in use between them.
struct SplitBackward {
  std::vector<GraphOp> input_gradient;
  std::vector<GraphOp> weight_gradient;
};

/// The second part has the products that only parameters' gradients depend on, and what reads their
/// results; all else, bias and norm gradients too, stays in the first.
/// Source: Qi et al., 2024, whose WeightGradStore keeps the products of linear layers.
SplitBackward split_backward(Block block);
/// By operator of `block.backward`: whether it belongs to the second part.
std::vector<bool> runs_later(const Block& block);

}  // namespace tessera
