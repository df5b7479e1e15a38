// Parameters that tensor-parallel ranks hold in full.
#include "workloads/families/megatron_model.h"

namespace tessera {

std::int64_t MegatronModel::norm_parameters() const {
  const bool bias = !llama_ || model_.norm == NormKind::layer_norm;
  return (bias ? 2 : 1) * model_.hidden;
}

std::int64_t MegatronModel::head_norm_parameters() const {
  const bool bias = !llama_ || model_.norm == NormKind::layer_norm;
  return model_.qk_norm && !model_.qk_norm_plain ? 2 * (bias ? 2 : 1) * model_.head_dim : 0;
}

std::int64_t MegatronModel::rank_parameters() const {
  const std::int64_t h = model_.hidden;  // without the norms' biases: these come with RMS norms
  return (h + 1) * model_.q_rank + (h + 1) * model_.kv_rank + (latent() ? h * model_.rope_dim : 0);
}

std::int64_t MegatronModel::partial_parameters(LayerKind kind) const {
  if (step_.lora_rank > 0) return partial_adapters(kind);
  const std::int64_t h = model_.hidden;
  if (kind.letter == layer_letter::kDelta)  // and the norm over each of its heads
    return norm_parameters() + model_.delta_value_dim;
  const bool attends = kind.letter == '\0' || kind.letter == layer_letter::kAttention;
  const std::int64_t of_ranks = attends ? rank_parameters() : 0;
  if (kind.letter != '\0')
    return norm_parameters() + of_ranks + (kind.experts && model_.shared_gate ? h : 0) +
           (kind.experts && routes_own_tokens() ? model_.experts * h : 0);
  const std::int64_t norms = model_.block_order == BlockOrder::parallel     ? 1
                             : model_.norm_placement == NormPlacement::both ? 4
                                                                            : 2;
  std::int64_t count = norms * norm_parameters();
  if (!llama_) return count + 2 * h + (routes_own_tokens() ? model_.experts * h : 0);
  if (model_.output_bias) count += h;
  if (has_mlp_bias(kind)) count += h;
  count += of_ranks;
  if (!kind.experts) return count;
  if (model_.shared_gate) count += h;
  const std::int64_t router = model_.experts * (h + (model_.expert_bias ? 1 : 0));
  return count + (routes_own_tokens() ? router : 0);
}

}  // namespace tessera
