// Attention of Megatron-Core r0.5.0: megatron/model/transformer.py, with fused softmax or fused
// attention, over whole heads of a rank.
#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/attention/context_attention.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/transformer.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// What Megatron's fused causal softmax was written for: blocks of four warps take a row each, or
/// two rows of up to 128 keys. It leaves the rest to PyTorch, in fp32.
/// Source: megatron/model/fused_softmax.py, megatron/fused_kernels/scaled_masked_softmax.h.
bool fused_softmax_takes(std::int64_t matrices, std::int64_t keys) {
  constexpr std::int64_t kFewestKeys = 17, kMostKeys = 4096, kTwoRowsPerWarp = 128, kWarps = 4;
  const std::int64_t per_block = keys <= kTwoRowsPerWarp ? 2 * kWarps : kWarps;
  return keys >= kFewestKeys && keys <= kMostKeys && keys % 4 == 0 && matrices % per_block == 0;
}

}  // namespace

Heads MegatronModel::project(Tape& tape, const Tensor& x, std::int64_t kv_heads) const {
  if (model_.q_rank > 0) return project_by_rank(tape, x, kv_heads);
  const std::int64_t width =
      ((model_.attention_gate ? 2 : 1) * heads_ + kv_heads) * model_.head_dim +
      kv_heads * value_dim_of(model_);
  const bool in_epilogue = has_qkv_bias() && profile_.bias_epilogue;
  const Tensor qkv =
      column(tape, "attention.qkv", x, width, in_epilogue ? Bias::epilogue : Bias::none);
  if (!has_qkv_bias() || in_epilogue) return split_heads(tape, qkv, kv_heads);
  const Tensor biased = add(tape, "attention.qkv_bias", qkv, bias(tape, "attention.qkv", width));
  return split_heads(tape, biased, kv_heads);
}

/// Queries of a rank of their own (Step-3's multi-matrix factorization attention).
Heads MegatronModel::project_by_rank(Tape& tape, const Tensor& x, std::int64_t kv_heads) const {
  const std::int64_t d = model_.head_dim;
  const std::int64_t v = value_dim_of(model_);
  const Tensor q = column(tape, "attention.q_up", query_source(tape, x), heads_ * d);
  const auto parts =
      split_last(tape, "attention.kv", column(tape, "attention.kv", x, kv_heads * (d + v)),
                 {kv_heads * d, kv_heads * v});
  return {view(tape, q, {s_, b_, heads_, d}), view(tape, parts[0], {s_, b_, kv_heads, d}),
          view(tape, parts[1], {s_, b_, kv_heads, v})};
}

Heads MegatronModel::split_heads(Tape& tape, const Tensor& qkv, std::int64_t kv_heads) const {
  const std::int64_t d = model_.head_dim;
  const std::int64_t v = value_dim_of(model_);
  if (model_.attention_gate) {
    const auto parts = split_last(tape, "attention.qkv", qkv,
                                  {heads_ * d, heads_ * d, kv_heads * d, kv_heads * d});
    return {view(tape, parts[0], {s_, b_, heads_, d}), view(tape, parts[2], {s_, b_, kv_heads, d}),
            view(tape, parts[3], {s_, b_, kv_heads, d}), parts[1]};
  }
  if (heads_ == kv_heads && v == d) {  // q, k and v of a head lie side by side
    const auto parts =
        chunk_last(tape, "attention.qkv", view(tape, qkv, {s_, b_, heads_, 3 * d}), 3);
    return {parts[0], parts[1], parts[2]};
  }
  const auto parts =
      split_last(tape, "attention.qkv", qkv, {heads_ * d, kv_heads * d, kv_heads * v});
  return {view(tape, parts[0], {s_, b_, heads_, d}), view(tape, parts[1], {s_, b_, kv_heads, d}),
          view(tape, parts[2], {s_, b_, kv_heads, v})};
}

/// Kernels of norms want rows side by side. Source: Megatron core/transformer/attention.py.
Heads MegatronModel::normalized(Tape& tape, const Heads& heads) const {
  const auto by_head = [&](const std::string& name, const Tensor& x) {
    const Tensor copy = contiguous(tape, name + "_copy", x);
    if (model_.qk_norm_plain) return plain_root_mean_square_norm(tape, name + "_norm", copy);
    if (!model_.qk_norm_wide) return norm(tape, name + "_norm", copy);
    const Tensor wide = view(tape, copy, {s_, b_, x.elements() / (s_ * b_)});
    return view(tape, norm(tape, name + "_norm", wide), x.sizes());
  };
  return {by_head("attention.q", heads.q), by_head("attention.k", heads.k), heads.v, heads.gate};
}

Tensor MegatronModel::turned(Tape& tape, const std::string& name, const Tensor& x) const {
  if (profile_.fused_rope) return fused_rope(tape, name, x, s_);
  const auto table = [&](const char* function) {
    return tape.input(function, {s_, 1, 1, x.shape.last()}, x.precision);
  };
  return composed_rope(tape, name, x, table("rotary.cos"), table("rotary.sin"));
}

/// The fused kernel copies what it does not turn; composed ones turn a part and join the rest.
Heads MegatronModel::rotated(Tape& tape, const Heads& heads) const {
  const std::int64_t part = rope_dim_of(model_);
  const auto turn = [&](const std::string& name, const Tensor& x) {
    if (profile_.fused_rope || part == model_.head_dim) return turned(tape, name, x);
    const auto parts = split_last(tape, name, x, {part, model_.head_dim - part});
    return concatenate_last(tape, name + ".join", turned(tape, name, parts[0]), parts[1]);
  };
  return {turn("rotary.q", heads.q), turn("rotary.k", heads.k), heads.v, heads.gate};
}

/// `masked` by more than the order of tokens.
Tensor MegatronModel::attention_weights(Tape& tape, const Tensor& scores, bool masked) const {
  const bool wants_fused = profile_.attention == AttentionKernels::fused_softmax;
  if (wants_fused && !masked && fused_softmax_takes(b_ * heads_, s_)) {
    return causal_softmax(tape, "attention.softmax", scores);
  }
  const Tensor mask = tape.input("attention.mask", {1, 1, s_, s_}, Precision::int8);
  const Tensor exact =
      wants_fused ? cast(tape, "attention.softmax.to_fp32", scores, Precision::fp32) : scores;
  const Tensor weights =
      softmax(tape, "attention.softmax", masked_fill_(tape, "attention.mask", exact, mask));
  return wants_fused ? cast(tape, "attention.softmax.to_16_bit", weights, scores.precision)
                     : weights;
}

Tensor MegatronModel::unfused_attention(Tape& tape, const Heads& heads) const {
  const auto batched = [&](const std::string& name, const Tensor& part) {
    const std::int64_t d = part.shape.last();
    const Tensor all = repeat_heads(tape, name, part, 2, heads_ / part.sizes()[2]);
    return transpose(tape, reshape(tape, all, {s_, b_ * heads_, d}), 0, 1);
  };
  const Tensor q = batched("attention.q", heads.q);
  const Tensor k = batched("attention.k_repeat", heads.k);
  const Tensor v = batched("attention.v_repeat", heads.v);
  std::optional<Tensor> alibi;
  if (bloom_)
    alibi =
        tape.buffer("attention.alibi", {b_ * heads_, 1, s_}, activation_precision(step_.precision));
  const Tensor scores = scaled_bmm(tape, "attention.scores", q, transpose(tape, k, 1, 2), alibi);
  const Tensor weights =
      attention_weights(tape, view(tape, scores, {b_, heads_, s_, s_}), model_.window > 0);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step_, model_.attention_dropout));
  const Tensor context =
      bmm(tape, "attention.context", view(tape, dropped, {b_ * heads_, s_, s_}), v);
  const Tensor by_head = view(tape, context, {b_, heads_, s_, value_dim_of(model_)});
  const Tensor by_position = permute(tape, by_head, {2, 0, 1, 3});
  const Tensor merged = contiguous(tape, "attention.merge_heads", by_position);
  tape.drop_names({scores, dropped});
  return merged;
}

Tensor MegatronModel::flash_attention(Tape& tape, const Heads& heads, bool window) const {
  const auto by_head = [&](const std::string& name, const Tensor& x) {  // [b, heads, s, d]
    if (!profile_.attention_copies) return permute(tape, x, {1, 2, 0, 3});
    const Tensor copy = contiguous(tape, name, permute(tape, x, {1, 0, 2, 3}));
    return permute(tape, copy, {0, 2, 1, 3});
  };
  const Tensor q = by_head("attention.q_copy", heads.q);
  const Tensor k = by_head("attention.k_copy", heads.k);
  const Tensor v = by_head("attention.v_copy", heads.v);
  AttentionInput input{q, k, v};
  if (window) (model_.window_chunks ? input.document : input.window) = model_.window;
  input.softcap = model_.attention_softcap;
  if (has_sinks(model_, window)) input.sinks = tape.parameter("attention.sinks", {heads_});
  const Tensor context = core_attention(tape, step_, input, {});
  return contiguous(tape, "attention.output_copy", permute(tape, context, {2, 0, 1, 3}));
}

/// The same over all-to-alls: whole sequences of some heads.
Tensor MegatronModel::ulysses_attention(Tape& tape, const Heads& heads, bool window) const {
  const int ranks = step_.layout.context;
  const Heads whole{sequence_to_heads(tape, "attention.q_exchange", heads.q, ranks),
                    sequence_to_heads(tape, "attention.k_exchange", heads.k, ranks),
                    sequence_to_heads(tape, "attention.v_exchange", heads.v, ranks)};
  return heads_to_sequence(tape, "attention.output_exchange", flash_attention(tape, whole, window),
                           ranks);
}

/// softmax(q k^T) v, [s, b, heads, d].
Tensor MegatronModel::mixed_heads(Tape& tape, const Heads& heads, bool window) const {
  const bool trades_heads =
      step_.layout.context > 1 && step_.context_attention == ContextAttention::ulysses;
  if (trades_heads) return ulysses_attention(tape, heads, window);
  if (uses_fused_attention(profile_)) return flash_attention(tape, heads, window);
  if (!recomputes_attention_alone(step_)) return unfused_attention(tape, heads);
  return tape.checkpoint({heads.q, heads.k, heads.v},
                         [=, this](Tape& t) { return unfused_attention(t, heads); });
}

Tensor MegatronModel::attention(Tape& tape, const Tensor& x, LayerKind kind) const {
  if (profile_.packed_attention) return packed_attention(tape, x);
  if (model_.index_heads > 0) return row(tape, "attention.output", chosen_attention(tape, x));
  Heads heads;
  if (latent()) {
    heads = latent_heads(tape, x, kind.positions);
  } else {
    heads = project(tape, x, kv_heads_of(model_, kind.window) / tensor_);
    if (model_.qk_norm && (kind.positions || !model_.qk_norm_plain))
      heads = normalized(tape, heads);
    if (llama_ && kind.positions) heads = rotated(tape, heads);
  }
  const Tensor merged =
      view(tape, mixed_heads(tape, heads, kind.window), {s_, b_, heads_ * value_dim_of(model_)});
  if (!model_.attention_gate) return row(tape, "attention.output", merged);
  const Tensor gate = contiguous(tape, "attention.gate_copy", heads.gate);
  return row(tape, "attention.output", fused_gate(tape, "attention.gate", merged, gate));
}

}  // namespace tessera
