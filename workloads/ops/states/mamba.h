#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// Sizes of a Mamba-2 mixer, of one tensor-parallel rank.
struct MambaShape {
  std::int64_t sequences = 0, positions = 0;
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t state = 0;   ///< numbers per channel
  std::int64_t groups = 0;  ///< of heads that share B and C
  bool normed = true;       ///< a norm over what the gate lets through; else the gate alone

  std::int64_t inner() const { return heads * head_dim; }
  /// Channels of the convolution: x, B and C.
  std::int64_t convolved() const { return inner() + 2 * groups * state; }
  /// Of the projection into the mixer: the gate, those, and a step size per head.
  std::int64_t projected() const { return inner() + convolved() + heads; }
};

/// Everything between the projections of a Mamba-2 layer: out [b * s, inner] of `projected`
/// [b * s, projected()]: a causal convolution of 4 positions, the step sizes, and, in chunks of 128
/// positions, the state that each chunk adds (a product per head), its passing on, C B^T (a product
/// per group), two products per head for what a chunk gives, and a gated norm, or a gate. Saves
/// `projected` and what that reads; backward runs the convolution and the states again, then two
/// products for each. Approximate in time: its Triton kernels were never measured, products count
/// as batched ones. Sources: Megatron-Core ssm/mamba_mixer.py; mamba_ssm
/// ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn; Dao and Gu, 2024.
Tensor mamba_scan(Tape& tape, const std::string& name, const Tensor& projected,
                  const MambaShape& shape);

}  // namespace tessera
