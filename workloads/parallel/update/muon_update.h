#pragma once

#include <cstdint>
#include <vector>

#include "workloads/optimizers/optimizer_step.h"
#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pass_library.h"

namespace tessera {

/// Parameters of a rank that are matrices of one shape.
struct ParameterMatrices {
  std::int64_t rows = 0, cols = 0;
  std::int64_t count = 0;
  bool experts = false;      ///< of experts, which other replicas may hold than the rest
  std::int64_t tensors = 1;  ///< that hold them; those of all experts of a layer are one

  std::int64_t elements() const { return rows * cols * count; }
};
/// Adds some to those of the same shape.
void add_matrices(const ParameterMatrices& matrices, std::vector<ParameterMatrices>& to);
/// Those of `block`: the matrices whose gradients its backward pass multiplies, one for each
/// expert.
std::vector<ParameterMatrices> matrices_of(const Block& block);

/// What makes one matrix of momentum orthogonal, in bf16: its norm, a division, and five times
/// A = X X^T, B = b A + c A A, X = a X + B X with the shorter side m first: 10 (2 m^2 n + m^3)
/// FLOPs. Sources: Jordan et al., "Muon", 2024; emerging_optimizers
/// orthogonalized_optimizers/muon_utils.py, whose additions are addmm's (recalled).
std::vector<GraphOp> orthogonalizing(const ParameterMatrices& matrices);

/// Elements of this rank's share of `matrices`.
std::int64_t own_matrices(const StepOptions& step, const std::vector<ParameterMatrices>& matrices);
/// What Adam keeps besides one moment (state_bytes), of the parameters that are not Muon's.
Bytes second_moments(const StepOptions& step, const UpdatedParameters& updated);

/// The part of Muon's update between momentum and weights. Ranks that divide the optimizer's states
/// gather all momentum in bf16, and each makes its share of the matrices orthogonal, the largest
/// share counted; without sharding every rank makes all. A tensor-parallel rank works on its part
/// of a matrix (Megatron's --muon-tp-mode blockwise), a fused matrix (queries, keys and values;
/// gate and up) counts as one. Source: Liu et al., "Muon is Scalable for LLM Training" (Moonlight),
/// 2025, algorithm 1.
class MuonUpdate {
 public:
  /// All have to outlive it.
  MuonUpdate(PassLibrary& library, const StepOptions& step, OpQueue& queue)
      : library_(library), step_(step), queue_(queue) {}

  void run(const std::vector<ParameterMatrices>& matrices);

 private:
  void gather(const std::vector<ParameterMatrices>& matrices, bool experts);

  PassLibrary& library_;
  const StepOptions& step_;
  OpQueue& queue_;
};

}  // namespace tessera
