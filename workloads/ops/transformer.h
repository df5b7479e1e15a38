#pragma once

#include <optional>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Kernels written by hand for transformers, in place of chains of PyTorch operators. Bytes are per
// element of the output, e = bytes of an element.

/// A launch of fused attention, in the precision of `q`.
Kernel attention_kernel(const Tensor& q, const AttentionCall& call);

/// Fused softmax(q k^T) v of q [b, heads, s, d] with k and v [b, kv_heads, s, d], views of any
/// strides; `call` gives what shapes cannot: the implementation, the mask, the window; values may
/// have another size than queries. `sinks` [heads] join each row's softmax: backward sums their
/// gradient over batch and rows by one kernel. The
/// result is [b, heads, s, d] in the memory order of q. Backward: one kernel of five products
/// for forward's two. Saves q, k, v, the output and 4 bytes per row (log-sum-exp).
/// Source: Dao, "FlashAttention-2", 2023.
Tensor fused_attention(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                       const Tensor& v, AttentionCall call,
                       const std::optional<Tensor>& sinks = std::nullopt);
/// softmax(q k^T) v, of the size of v's rows, in the memory order of q.
StridedShape attention_output_shape(const Tensor& q, const Tensor& v);

/// Scale, causal mask and softmax of scores [batch, s, s]: half of them read, all written (1.5e);
/// backward in place on the gradient, halves of gradient and output read (2e). Saves the output.
/// Source: NVIDIA apex csrc/megatron/scaled_upper_triang_masked_softmax.h.
Tensor causal_softmax(Tape& tape, const std::string& name, const Tensor& scores);

/// RMS norm, 2e; input gradient 3e, weight gradient 2e. Saves the input and 4 bytes per row.
Tensor fused_rms_norm(Tape& tape, const std::string& name, const Tensor& x);
/// With a weight that exists already, [h].
Tensor fused_rms_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight);
/// Without a weight, compiled by torch.jit: 2e; 3e. Saves the input. Source: Megatron-Core
/// transformer/torch_norm.py, L2Norm.
Tensor plain_root_mean_square_norm(Tape& tape, const std::string& name, const Tensor& x);

/// Rotary embedding by tables [s, d]: 2e; 2e. Saves nothing.
Tensor fused_rope(Tape& tape, const std::string& name, const Tensor& x, std::int64_t positions);

/// x times sigmoid or silu of `gate`, of the same sizes, compiled by torch.jit: 3e; reads gradient,
/// x and gate, writes both gradients, 5e. Saves x and gate. Source: Megatron-Core
/// transformer/attention.py, _apply_output_gate.
Tensor fused_gate(Tape& tape, const std::string& name, const Tensor& x, const Tensor& gate);

/// silu(gate) * up of the halves of `x` [.., 2f]: 3e; reads gradient and x, writes x's gradient,
/// 5e. Saves x.
Tensor fused_swiglu(Tape& tape, const std::string& name, const Tensor& x);

}  // namespace tessera
