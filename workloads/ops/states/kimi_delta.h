#pragma once

#include <string>

#include "workloads/ops/states/delta_net.h"

namespace tessera {

/// -exp(A) softplus(x + bias) in fp32 of every channel of x [b, s, heads * key_dim], as
/// [b, s, heads, key_dim]: one kernel, which reads 2 and writes 4 bytes; backward one that reads x
/// and the gradient, and a sum for A and bias each. Saves x. Source: flash-linear-attention
/// ops/kda/gate.py, fused_kda_gate (recalled).
Tensor channel_decay(Tape& tape, const std::string& name, const Tensor& x, const DeltaShape& shape);

/// An RMS norm over rows of x times sigmoid of `gate`, of the same sizes: one kernel, 3e; backward
/// one of 5e, and a sum of the weight's gradient. Saves x, gate and 4 bytes per row. Source:
/// flash-linear-attention modules/fused_norm_gate.py, FusedRMSNormGated (recalled).
Tensor gated_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& gate);

/// gated_delta_rule() with a decay per channel, [b, s, heads, key_dim] in fp32, and a step per head
/// in fp32. In chunks of 64 positions: running sums of the decay; q k^T and k k^T, whose decays
/// differ by channel, in blocks of 16 positions, of which those up to the diagonal are made; the
/// second's triangle solved; what each chunk erases and writes, and its decayed keys; the states,
/// one chunk after the other; what they and the chunk's own pairs give. Saves the operands, running
/// sums, q k^T in fp32 and the solved triangles; backward makes what is erased and the states
/// again, then five kernels and a sum back. Counted as gated_delta_rule() is; the blocks of the
/// diagonal, which its kernels go through column by column without tensor instructions, count as
/// products too. Approximate in time: its Triton kernels were never measured. Sources:
/// flash-linear-attention ops/kda/chunk.py, chunk_intra.py, wy_fast.py (recalled); Kimi Team, "Kimi
/// Linear", 2025.
Tensor kimi_delta_rule(Tape& tape, const std::string& name, const DeltaOperands& operands,
                       const DeltaShape& shape);

}  // namespace tessera
