#pragma once

#include <vector>

#include "sim/remat/graph.h"

namespace tessera::remat {

/// Tensors of the forward pass that alone connect what comes before with what comes after within
/// the forward pass, in program order: keeping one cuts every chain there.
std::vector<TensorId> forward_articulation(const Graph& graph);

}  // namespace tessera::remat
