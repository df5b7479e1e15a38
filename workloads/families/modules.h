#pragma once

#include <optional>
#include <string>

#include "workloads/graph/tape.h"
#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

// Pieces of transformer layers that several families share, as chains of PyTorch operators or as
// one kernel, whichever the framework profile says.

constexpr bool uses_fused_attention(const FrameworkProfile& profile) {
  return profile.attention != AttentionKernels::unfused &&
         profile.attention != AttentionKernels::fused_softmax;
}
/// softmax(q k^T) v of q, k, v [b, heads, s, d]: by the profile's fused kernel, or as `unfused`
/// composes it; computed again in backward where `step` says so. `unfused` runs after this returns.
struct AttentionInput {
  Tensor q, k, v;
  bool causal = true;
  std::int64_t window = 0;      ///< AttentionCall::window
  std::int64_t document = 0;    ///< tokens of equal pieces that see only themselves; 0: one piece
  bool softcap = false;         ///< AttentionCall::softcap
  std::optional<Tensor> sinks;  ///< a trained number per head, [heads]
};
Tensor core_attention(Tape& tape, const StepOptions& step, const AttentionInput& input,
                      const Tape::Recomputable& unfused);

/// Whether backward runs the part around softmax(q k^T) v again, without the rest of the layer.
inline bool recomputes_attention_alone(const StepOptions& step) {
  if (!step.recompute_modules.empty()) return step.recomputes("core_attn");
  return step.recompute == Recompute::selective &&
         step.framework.selective == SelectiveRecompute::core_attention;
}

/// Makes a layer's output, `forward`, the block's; computed again in backward where `step` says so.
/// `forward` runs after this returns.
void recomputable_layer(Tape& tape, const StepOptions& step, const Tensor& x,
                        const Tape::Recomputable& forward);

/// RMS norm over the last dimension; its arithmetic is in fp32.
Tensor root_mean_square_norm(Tape& tape, const std::string& name, const Tensor& x,
                             const FrameworkProfile& profile);
/// With a weight that exists already, [h].
Tensor root_mean_square_norm(Tape& tape, const std::string& name, const Tensor& x,
                             const Tensor& weight, const FrameworkProfile& profile);

/// x cos + rotate_half(x) sin with tables that broadcast to `x`: five kernels.
Tensor composed_rope(Tape& tape, const std::string& name, const Tensor& x, const Tensor& cosine,
                     const Tensor& sine);

/// The same as a product of complex numbers in fp32, between two casts where `x` has 16 bits: three
/// kernels, and as many back. Source: torchtitan, models/llama3/model.py, apply_rotary_emb.
Tensor complex_rope(Tape& tape, const std::string& name, const Tensor& x, std::int64_t positions);

/// Every head (dimension `dim`) `repeats` times, neighbours first: a copy unless that is once.
Tensor repeat_heads(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim,
                    std::int64_t repeats);

/// silu (or gelu) of the first half of `x` times the second half.
Tensor gated_silu(Tape& tape, const std::string& name, const Tensor& x,
                  const FrameworkProfile& profile, Activation activation = Activation::swiglu);

}  // namespace tessera
