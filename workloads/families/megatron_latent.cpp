// Latent attention of Megatron-Core: transformer/multi_latent_attention.py, not absorbed, as
// training runs it; without positions as the code beside Kimi Linear's weights (modeling_kimi.py,
// KimiMLAAttention, recalled) joins the key that heads share. What leads into the ranks is held in
// full by every tensor-parallel rank, and works on its part of the sequence.
#include "workloads/families/megatron_model.h"
#include "workloads/ops/attention/latent.h"
#include "workloads/ops/linear.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/views.h"

namespace tessera {

/// What queries come from: the normalized rank, or the hidden state.
Tensor MegatronModel::query_source(Tape& tape, const Tensor& x) const {
  if (model_.q_rank == 0) return x;
  const Tensor weight = tape.parameter("attention.q_down.weight", {model_.q_rank, model_.hidden});
  const Tensor down = linear_over_last(tape, "attention.q_down", x, weight, {});
  return norm(tape, "attention.q_norm", down);
}

/// [s, b, heads, head_dim], turned where its layer has positions.
Tensor MegatronModel::latent_queries(Tape& tape, const Tensor& source, bool positions) const {
  const std::int64_t d = model_.head_dim;
  const std::int64_t rope = model_.rope_dim;
  const char* name = model_.q_rank == 0 ? "attention.q" : "attention.q_up";
  const Tensor q = view(tape, column(tape, name, source, heads_ * d), {s_, b_, heads_, d});
  if (!positions) return q;
  if (profile_.fused_rope) return rotated_part(tape, "rotary.q", q, rope, s_);
  const auto parts = split_last(tape, "attention.q_split", q, {d - rope, rope});
  return concatenate_last(tape, "rotary.q.join", parts[0], turned(tape, "rotary.q", parts[1]));
}

/// The key part with positions, of the whole sequence: [s, b, rope].
Tensor MegatronModel::shared_key(Tape& tape, const Tensor& x) const {
  const Tensor part = contiguous(tape, "attention.k_rope_copy", x);
  return whole_sequence_of(tape, "attention.k_rope", part);
}

/// Keys and values of all heads from the rank, and the key that they share.
Heads MegatronModel::latent_keys(Tape& tape, const Tensor& latent, const Tensor& key,
                                 bool positions) const {
  const std::int64_t rope = model_.rope_dim;
  const std::int64_t nope = model_.head_dim - rope;
  const std::int64_t v = value_dim_of(model_);
  const Tensor kv = view(tape, column(tape, "attention.kv_up", latent, heads_ * (nope + v)),
                         {s_, b_, heads_, nope + v});
  if (positions && profile_.fused_rope) {
    const KeysValues made = latent_keys_values(tape, "rotary.kv", kv, key, v, s_);
    return {Tensor(), made.keys, made.values};
  }
  const auto halves = split_last(tape, "attention.kv_split", kv, {nope, v});
  const Tensor shared = view(tape, key, {s_, b_, 1, rope});
  const Tensor one = positions ? turned(tape, "rotary.k", shared) : shared;
  const Tensor all = expand(tape, "rotary.k.expand", one, {s_, b_, heads_, rope});
  return {Tensor(), concatenate_last(tape, "rotary.k.join", halves[0], all), halves[1]};
}

/// From the ranks on, run again in backward where the step says so (Megatron's mla_up_proj).
Heads MegatronModel::latent_heads(Tape& tape, const Tensor& x, bool positions) const {
  const std::int64_t rope = model_.rope_dim;
  const Tensor source = query_source(tape, x);
  const Tensor weight =
      tape.parameter("attention.kv_down.weight", {model_.kv_rank + rope, model_.hidden});
  const Tensor down = linear_over_last(tape, "attention.kv_down", x, weight, {});
  const auto parts = split_last(tape, "attention.kv_down", down, {model_.kv_rank, rope});
  const Tensor key = shared_key(tape, parts[1]);
  const Tensor latent =
      norm(tape, "attention.kv_norm", contiguous(tape, "attention.kv_copy", parts[0]));
  const auto up = [=, this](Tape& t) {
    const Tensor q = latent_queries(t, source, positions);
    const Heads made = latent_keys(t, latent, key, positions);
    return std::vector{q, made.k, made.v};
  };
  const std::vector<Tensor> heads = step_.recomputes("mla_up_proj") ? tape.remade(up) : up(tape);
  return {heads[0], heads[1], heads[2]};
}

}  // namespace tessera
