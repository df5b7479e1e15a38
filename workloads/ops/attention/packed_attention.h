#pragma once

#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

// What stands around FlashAttention's kernels for sequences of variable length, as nanotron calls
// them. Bytes are per element of the operand, e = bytes of an element.
// Source: nanotron models/llama.py, CausalSelfAttention and CoreAttention, December 2024.

/// The slices of dimension `dim`, which disappears: views. Backward: one kernel that stacks their
/// gradients, 2e.
std::vector<Tensor> unbind(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim);

/// Rotary embedding over the memory of `x` by tables [positions, d]: 2e; 2e over its gradient.
/// Saves nothing. Source: flash-attn layers/rotary.py, apply_rotary_emb_qkv_ and _kv_.
Tensor rope_in_place(Tape& tape, const std::string& name, const Tensor& x, std::int64_t positions);

/// Bounds of the sequences from the mask [sequences, positions], of queries and of keys: a zero
/// fill, a sum over positions and a running sum for each, without gradients.
void sequence_bounds(Tape& tape, const std::string& name, std::int64_t sequences,
                     std::int64_t positions);

}  // namespace tessera
