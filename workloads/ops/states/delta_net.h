#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// Sizes of a gated delta net, of one tensor-parallel rank.
struct DeltaShape {
  std::int64_t sequences = 0, positions = 0;
  std::int64_t heads = 0;      ///< of values; each has a state
  std::int64_t key_heads = 0;  ///< of queries, and of keys; each serves heads / key_heads
  std::int64_t key_dim = 0, value_dim = 0;

  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return heads * value_dim; }
  /// Channels of the convolution: queries, keys and values.
  std::int64_t convolved() const { return 2 * keys() + values(); }
  /// Of the projection into the layer: those, a gate per value, and two numbers per head.
  std::int64_t projected() const { return convolved() + values() + 2 * heads; }
};

/// A causal convolution of 4 positions and silu over every channel of x, [b, channels, s] or
/// [b, s, channels]: one kernel, 2e; backward one of 3e. Saves x. Sources: Dao-AILab/causal-conv1d;
/// flash-linear-attention modules/convolution.py (both recalled).
Tensor causal_convolution(Tape& tape, const std::string& name, const Tensor& x,
                          std::int64_t channels, bool biased = false);

/// x over its length, by rows: 2e; 3e. Saves its result and 4 bytes per row. Source:
/// flash-linear-attention modules/l2norm.py (recalled).
Tensor unit_rows(Tape& tape, const std::string& name, const Tensor& x);

/// The decay of each state, in fp32, from a number per head and position: -exp(A) softplus(x +
/// bias).
Tensor log_decay(Tape& tape, const std::string& name, const Tensor& x);

/// What the states give to queries, [b, s, heads, value_dim], of q and k [b, s, heads, key_dim], v,
/// log decay and step [b, s, heads]. In chunks of 64 positions: running sums of the decay; k k^T;
/// its triangle solved, by blocks of 16 and then merged; what each chunk erases and writes; the
/// states, one chunk after the other; what they and the chunk's own pairs give. Saves the operands,
/// the running sums and the solved triangles; backward makes what is erased and the states again,
/// then five kernels and two additions. Products of a kernel count as one of the same arithmetic;
/// those of states as one whose depth is all positions, for which nothing else runs in parallel.
/// Approximate in time: its Triton kernels were never measured. Sources: flash-linear-attention
/// ops/gated_delta_rule/chunk.py (recalled); Yang et al., "Gated Delta Networks", 2025.
struct DeltaOperands {
  Tensor q, k, v, decay, step;
};
Tensor gated_delta_rule(Tape& tape, const std::string& name, const DeltaOperands& operands,
                        const DeltaShape& shape);

}  // namespace tessera
