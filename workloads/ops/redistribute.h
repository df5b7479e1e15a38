#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

// How PyTorch's DTensor moves [b, s, h] between tensor-parallel ranks. Collectives gather and
// scatter the first dimension, so what is split along the sequence is copied once more: rows of a
// gather behind it, of a reduce-scatter ahead of it (2e per element of the whole). Nothing runs
// beside them. Sources: torch/distributed/_functional_collectives.py, all_gather_tensor and
// reduce_scatter_tensor; torch/distributed/tensor/_redistribute.py.

/// Whole sequences of parts [b, s / ranks, h]. Backward: a copy and a reduce-scatter.
Tensor whole_sequence(Tape& tape, const std::string& name, const Tensor& x, int ranks);
/// This rank's part of the sum of `partial` [b, s, h]. Backward: a gather and a copy.
Tensor part_of_sum(Tape& tape, const std::string& name, const Tensor& partial, int ranks);
/// The sum of `partial` over ranks, in place, awaited. Backward: the gradient itself.
Tensor sum_over_ranks(Tape& tape, const std::string& name, const Tensor& partial);
/// `x`, of whose gradient every rank has a share: backward sums them, awaited.
Tensor with_summed_gradient(Tape& tape, const std::string& name, const Tensor& x);
/// Parts of the last dimension side by side: a gather and a copy. Backward: a copy of the own part.
Tensor whole_rows(Tape& tape, const std::string& name, const Tensor& x, int ranks);

/// A linear layer without bias that reads parts of a sequence.
struct PartReader {
  std::string name;
  std::int64_t out = 0;  ///< of this rank
};
/// The results [b, s, out] of layers that all read `x` [b, s / ranks, h]: one gather, beside which
/// runs what is multiplied chunk by chunk, of all but one of the ranks' rows; without copies.
/// Backward: the data gradients are added, and their sum is reduce-scattered behind.
/// Source: torch/distributed/_symmetric_memory/__init__.py, fused_all_gather_matmul with several
/// right-hand sides (torchtitan's asynchronous tensor parallelism).
std::vector<Tensor> gathered_products(Tape& tape, const std::string& name, const Tensor& x,
                                      const std::vector<PartReader>& readers, int ranks);

}  // namespace tessera
