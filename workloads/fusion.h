#pragma once

#include "workloads/graph/block.h"

namespace tessera {

/// Merges chains of pointwise kernels and the reductions between them, as torch.compile's code
/// generator does: matrix products, gathers, scatters and communication stay; kernels between two
/// of them that hand tensors to each other over the same number of elements become one, which reads
/// what comes from outside and writes what is used outside. Tensors that only lived inside
/// disappear. What backward reads stays as the eager graph saved it; recomputation of cheap values
/// in backward (the min-cut partitioner) is not modelled, so training traffic is an upper bound.
/// Source: Ansel et al., "PyTorch 2", ASPLOS 2024, sections 5 and 6.
void fuse_pointwise(Block& block);

}  // namespace tessera
