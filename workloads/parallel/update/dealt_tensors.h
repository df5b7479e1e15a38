#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/parallel/update/muon_update.h"

namespace tessera {

/// What one replica updates of the parameters that it shares with the others of a group. Of two
/// replicas it may be two: `matrices` and `others` are of the one whose matrices take the most
/// FLOPs, which all others wait for; `states` of the one that keeps the most.
struct DealtTensors {
  bool experts = false;  ///< whose replicas are those of experts
  int ranks = 1;
  std::int64_t all = 0;  ///< parameters of the group
  std::int64_t all_tensors = 0;
  std::vector<ParameterMatrices> matrices;
  std::int64_t others = 0;   ///< parameters of what Adam updates
  std::int64_t tensors = 0;  ///< both
  Bytes states;

  std::int64_t matrix_elements() const;
  std::int64_t own() const { return matrix_elements() + others; }
};

/// Megatron's layer-wise optimizer: tensors in ascending order of their size go to the replicas in
/// turn, to the last and back to the first, experts' to those of experts. `others`: sizes of what
/// is no matrix of Muon's. Source: Megatron-Core optimizer/layer_wise_optimizer.py, shard_params
/// (recalled).
std::array<DealtTensors, 2> deal_tensors(const StepOptions& step,
                                         const std::vector<ParameterMatrices>& matrices,
                                         const std::vector<std::int64_t>& others);

/// Updated weights to all replicas: a rank's own ones are flattened, gathered by one collective
/// into a piece for each replica (NCCL has none of several sizes: PyTorch groups a broadcast of
/// each, which take as long as a gather of all), and those of others copied to where they belong.
/// Source: Megatron-Core optimizer/layer_wise_optimizer.py, allgather_params (recalled).
void gather_dealt(PassLibrary& library, const StepOptions& step, OpQueue& queue,
                  const DealtTensors& dealt);

}  // namespace tessera
