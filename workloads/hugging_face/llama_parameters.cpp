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

/// From the hidden state, or from a rank behind a norm.
std::int64_t queries_of(const ModelSpec& m) {
  const std::int64_t queries = m.heads * m.head_dim;
  if (m.q_rank == 0) return m.hidden * queries;
  return m.hidden * m.q_rank + norm_of(m, m.q_rank) + m.q_rank * queries;
}

/// Queries from their rank, a key with a layer norm, a weight per head.
std::int64_t indexer_of(const ModelSpec& m) {
  if (m.index_heads == 0) return 0;
  const std::int64_t d = m.index_head_dim;
  return m.q_rank * m.index_heads * d + m.hidden * d + 2 * d + m.hidden * m.index_heads;
}

std::int64_t latent_attention(const ModelSpec& m) {
  const std::int64_t down = m.hidden * (m.kv_rank + m.rope_dim) + norm_of(m, m.kv_rank);
  const std::int64_t up = m.kv_rank * m.heads * (m.head_dim - m.rope_dim + value_dim_of(m));
  return queries_of(m) + down + up + m.heads * value_dim_of(m) * m.hidden + indexer_of(m);
}

std::int64_t grouped_attention(const ModelSpec& m, std::int64_t kv_heads) {
  const std::int64_t heads = m.heads * m.head_dim;
  const std::int64_t keys = kv_heads * m.head_dim, values = kv_heads * value_dim_of(m);
  std::int64_t count =
      queries_of(m) + m.hidden * (keys + values) + m.heads * value_dim_of(m) * m.hidden;
  if (m.qk_norm && !m.qk_norm_plain)
    count += m.qk_norm_wide ? norm_of(m, heads + keys) : norm_of(m, 2 * m.head_dim);
  if (m.qkv_bias) count += heads + keys + values;
  if (m.attention_gate) count += m.hidden * heads + (m.qkv_bias ? heads : 0);
  return count;
}

/// Of a layer with (`window`) or without a window.
std::int64_t attention_of(const ModelSpec& m, bool window) {
  return (m.kv_rank > 0 ? latent_attention(m) : grouped_attention(m, kv_heads_of(m, window))) +
         (m.output_bias ? m.hidden : 0) + (has_sinks(m, window) ? m.heads : 0);
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

/// Kimi's: queries, keys, values and output, three convolutions without biases, a rank as wide as a
/// head for the decay of every channel and one for the gate, a step and A per head, a number per
/// channel that the decay adds, the norm of the gate.
std::int64_t kimi_delta_of(const ModelSpec& m) {
  const std::int64_t width = m.delta_heads * m.delta_key_dim;
  constexpr std::int64_t kTaps = 4;
  return 4 * m.hidden * width + 3 * kTaps * width + 2 * m.delta_key_dim * (m.hidden + width) +
         (m.hidden + 1) * m.delta_heads + width + m.delta_key_dim;
}

/// Mamba-1: projections in and out, convolution with biases, what steps and states come from with
/// three norms, A, D, a step per channel.
std::int64_t scan_of(const ModelSpec& m) {
  const std::int64_t channels = m.mamba_heads, rank = scan_rank_of(m);
  constexpr std::int64_t kTaps = 4;
  return 3 * m.hidden * channels + channels * (kTaps + 1) + channels * (rank + 2 * m.mamba_state) +
         rank + 2 * m.mamba_state + channels * (rank + 1) + channels * m.mamba_state + channels;
}

/// Projections to two gates and x, and back, and the convolution without biases.
std::int64_t short_convolution_of(const ModelSpec& m) {
  constexpr std::int64_t kTaps = 3;
  return 4 * m.hidden * m.hidden + kTaps * m.hidden;
}

/// Of a layer that is one branch.
std::int64_t lettered_layer(const ModelSpec& m, std::int64_t number) {
  const char letter = letter_of(m, number);
  const std::int64_t norm = norm_of(m, m.hidden);
  if (letter == layer_letter::kMamba) return norm + mamba_of(m) + m.mamba_heads * m.mamba_head_dim;
  if (letter == layer_letter::kSideBySide)
    return norm + mamba_of(m) + attention_of(m, has_window(m, number));
  if (letter == layer_letter::kDelta) return norm + delta_net_of(m);
  if (letter == layer_letter::kKimiDelta) return norm + kimi_delta_of(m);
  if (letter == layer_letter::kScan) return norm + scan_of(m);
  if (letter == layer_letter::kShortConvolution) return norm + short_convolution_of(m);
  if (letter == layer_letter::kAttention) return norm + attention_of(m, has_window(m, number));
  return norm + (letter == layer_letter::kExperts ? sparse_mlp(m) : dense_mlp(m));
}

/// Layer `number`, from 0.
std::int64_t layer_of(const ModelSpec& m, std::int64_t number) {
  if (!m.layer_pattern.empty()) return lettered_layer(m, number);
  return attention_of(m, has_window(m, number)) +
         (has_experts(m, number) ? sparse_mlp(m) : dense_mlp(m)) +
         norms_of_layer(m) * norm_of(m, m.hidden);
}

std::int64_t layers_of(const ModelSpec& m) {
  std::int64_t sum = 0;
  for (std::int64_t number = 0; number < m.layers; ++number) sum += layer_of(m, number);
  return sum;
}

}  // namespace

std::int64_t llama_expert_parameters(const ModelSpec& m) {
  const std::int64_t ffn = expert_ffn_of(m);
  return matrices_of_mlp(m, ffn) + (m.expert_bias ? branches(m) * ffn + m.hidden : 0);
}

std::int64_t llama_mtp_parameters(const ModelSpec& m) {
  const std::int64_t projection = 2 * m.hidden * m.hidden + 3 * norm_of(m, m.hidden);
  return m.mtp_layers * (projection + layer_of(m, m.layers - 1));
}

std::int64_t llama_parameters(const ModelSpec& m) {
  const std::int64_t head =
      (m.tied_embeddings ? 0 : m.vocab * m.hidden) + (m.head_bias ? m.vocab : 0);
  return m.vocab * m.hidden + layers_of(m) + norm_of(m, m.hidden) + head;
}

}  // namespace tessera
