#include "workloads/hugging_face/llama_parameters.h"

#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

std::int64_t norm_of(const ModelSpec& m, std::int64_t width) {
  return (m.norm == NormKind::layer_norm ? 2 : 1) * width;
}

/// Of the feed-forward: both branches, or the one.
std::int64_t branches(const ModelSpec& m) {
  return is_gated(m.activation) ? 2 : 1;
}

std::int64_t matrices_of_mlp(const ModelSpec& m, std::int64_t ffn) {
  return (branches(m) + 1) * m.hidden * ffn;
}

std::int64_t latent_attention(const ModelSpec& m) {
  const std::int64_t queries = m.heads * m.head_dim;
  const std::int64_t of_queries =
      m.q_rank > 0 ? m.hidden * m.q_rank + norm_of(m, m.q_rank) + m.q_rank * queries
                   : m.hidden * queries;
  const std::int64_t down = m.hidden * (m.kv_rank + m.rope_dim) + norm_of(m, m.kv_rank);
  const std::int64_t up = m.kv_rank * m.heads * (m.head_dim - m.rope_dim + value_dim_of(m));
  return of_queries + down + up + m.heads * value_dim_of(m) * m.hidden;
}

std::int64_t grouped_attention(const ModelSpec& m) {
  const std::int64_t heads = m.heads * m.head_dim;
  const std::int64_t keys = m.kv_heads * m.head_dim;
  std::int64_t count = 2 * m.hidden * heads + 2 * m.hidden * keys;
  if (m.qk_norm && !m.qk_norm_plain)
    count += m.qk_norm_wide ? norm_of(m, heads + keys) : norm_of(m, 2 * m.head_dim);
  if (m.qkv_bias) count += heads + 2 * keys;
  if (m.attention_gate) count += m.hidden * heads + (m.qkv_bias ? heads : 0);
  return count;
}

std::int64_t attention_of(const ModelSpec& m) {
  return (m.kv_rank > 0 ? latent_attention(m) : grouped_attention(m)) +
         (m.output_bias ? m.hidden : 0) + (m.attention_sinks ? m.heads : 0);
}

std::int64_t dense_mlp(const ModelSpec& m) {
  constexpr std::int64_t kOfXielu = 2;
  return matrices_of_mlp(m, m.ffn) + (m.mlp_bias ? branches(m) * m.ffn + m.hidden : 0) +
         (m.activation == Activation::xielu ? kOfXielu : 0);
}

std::int64_t sparse_mlp(const ModelSpec& m) {
  const std::int64_t router =
      m.hidden + (m.expert_bias ? 1 : 0) + (m.router_bias ? 1 : 0);  // per expert
  return m.experts * (llama_expert_parameters(m) + router) + matrices_of_mlp(m, m.shared_ffn) +
         (m.shared_gate ? m.hidden : 0);
}

std::int64_t norms_of_layer(const ModelSpec& m) {
  if (m.block_order == BlockOrder::parallel) return 1;
  return m.norm_placement == NormPlacement::both ? 4 : 2;
}

/// Projections, convolution with biases, A, D and a step per head; without the norm of the gate.
std::int64_t mamba_of(const ModelSpec& m) {
  const std::int64_t inner = m.mamba_heads * m.mamba_head_dim;
  const std::int64_t convolved = inner + 2 * m.mamba_groups * m.mamba_state;
  constexpr std::int64_t kTaps = 4;
  return m.hidden * (inner + convolved + m.mamba_heads) + convolved * (kTaps + 1) +
         3 * m.mamba_heads + inner * m.hidden;
}

/// Projections, convolution without biases, A and a step per head, the norm of the gate.
std::int64_t delta_net_of(const ModelSpec& m) {
  const std::int64_t values = m.delta_heads * m.delta_value_dim;
  const std::int64_t convolved = 2 * m.delta_key_heads * m.delta_key_dim + values;
  constexpr std::int64_t kTaps = 4;
  return m.hidden * (convolved + values + 2 * m.delta_heads) + convolved * kTaps +
         2 * m.delta_heads + m.delta_value_dim + values * m.hidden;
}

/// Projections to two gates and x, and back, and the convolution without biases.
std::int64_t short_convolution_of(const ModelSpec& m) {
  constexpr std::int64_t kTaps = 3;
  return 4 * m.hidden * m.hidden + kTaps * m.hidden;
}

/// Of a layer that is one branch.
std::int64_t lettered_layer(const ModelSpec& m, char letter) {
  const std::int64_t norm = norm_of(m, m.hidden);
  if (letter == layer_letter::kMamba) return norm + mamba_of(m) + m.mamba_heads * m.mamba_head_dim;
  if (letter == layer_letter::kSideBySide) return norm + mamba_of(m) + attention_of(m);
  if (letter == layer_letter::kDelta) return norm + delta_net_of(m);
  if (letter == layer_letter::kShortConvolution) return norm + short_convolution_of(m);
  if (letter == layer_letter::kAttention) return norm + attention_of(m);
  return norm + (letter == layer_letter::kExperts ? sparse_mlp(m) : dense_mlp(m));
}

std::int64_t layers_of(const ModelSpec& m) {
  std::int64_t sum = 0;
  for (const char letter : m.layer_pattern) sum += lettered_layer(m, letter);
  return sum;
}

std::int64_t layer_of(const ModelSpec& m, bool experts) {
  return attention_of(m) + (experts ? sparse_mlp(m) : dense_mlp(m)) +
         norms_of_layer(m) * norm_of(m, m.hidden);
}

}  // namespace

std::int64_t llama_expert_parameters(const ModelSpec& m) {
  const std::int64_t ffn = expert_ffn_of(m);
  return matrices_of_mlp(m, ffn) + (m.expert_bias ? branches(m) * ffn + m.hidden : 0);
}

std::int64_t llama_mtp_parameters(const ModelSpec& m) {
  const std::int64_t projection = 2 * m.hidden * m.hidden + 3 * norm_of(m, m.hidden);
  return m.mtp_layers * (projection + layer_of(m, has_experts(m, m.layers - 1)));
}

std::int64_t llama_parameters(const ModelSpec& m) {
  const std::int64_t sparse = expert_layers_of(m);
  const std::int64_t layers = m.layer_pattern.empty() ? sparse * layer_of(m, true) +
                                                            (m.layers - sparse) * layer_of(m, false)
                                                      : layers_of(m);
  const std::int64_t head =
      (m.tied_embeddings ? 0 : m.vocab * m.hidden) + (m.head_bias ? m.vocab : 0);
  return m.vocab * m.hidden + layers + norm_of(m, m.hidden) + head;
}

}  // namespace tessera
