#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Causal attention of a rank that holds 1 / `ranks` of each sequence, in two pieces from both ends
// so that all ranks have equal work (zig-zag). Its products are 1 / `ranks` of those of the whole
// sequence. q [b, heads, s, d], k and v [b, kv_heads, s, d] with the rank's s; e = bytes of an
// element, K = b * kv_heads * s * d. The ranks of a group share one program: a kernel whose shape
// depends on the rank has the mean one.
// Source: Transformer Engine attention.py, AttnFuncWithCPAndKVP2P and AttnFuncWithCPAndKVAllGather;
// Liu et al., "Ring Attention", 2023.

/// Keys and values of 2 K e bytes go round the group in ranks - 1 steps, each beside the attention
/// of the part that is there; a kernel per part adds its result to the output. Backward: they go
/// round again and their gradients behind them, ranks - 1 steps each. Saves q, the packed k and v,
/// the output and its log-sum-exp.
Tensor ring_attention(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                      const Tensor& v, AttentionCall call, int ranks);

/// Keys and values of the whole sequence are gathered ahead of the attention, and again ahead of
/// its backward, whose gradients of them are reduced and scattered: 2 K e * ranks bytes each.
/// Saves q, k, v, the output and its log-sum-exp.
Tensor gathered_attention(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                          const Tensor& v, AttentionCall call, int ranks);

/// From [s, b, heads, d] to [s * ranks, b, heads / ranks, d]: an all-to-all between two copies that
/// order what is sent and what arrived. Backward: the same the other way round.
/// Source: Jacobs et al., "DeepSpeed Ulysses", 2023.
Tensor sequence_to_heads(Tape& tape, const std::string& name, const Tensor& x, int ranks);
/// From [s, b, heads, d] to [s / ranks, b, heads * ranks, d], the way back.
Tensor heads_to_sequence(Tape& tape, const std::string& name, const Tensor& x, int ranks);

}  // namespace tessera
