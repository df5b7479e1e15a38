// Attention of nanotron, December 2024: src/nanotron/models/llama.py, CausalSelfAttention.
#include "workloads/ops/attention/packed_attention.h"

#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/ops/views.h"

namespace tessera {

/// Queries, keys and values, batch first, [b, s, heads, d]: one copy of all three where they have
/// as many heads, else a copy of each.
Heads MegatronModel::unpacked(Tape& tape, const Tensor& qkv) const {
  const std::int64_t d = model_.head_dim;
  if (heads_ == kv_heads_) {
    const Tensor by_part = permute(tape, view(tape, qkv, {s_, b_, 3, heads_, d}), {2, 1, 0, 3, 4});
    const auto parts =
        unbind(tape, "attention.unbind", clone(tape, "attention.unpack", by_part), 0);
    return {parts[0], parts[1], parts[2]};
  }
  const auto parts =
      split_last(tape, "attention.qkv", qkv, {heads_ * d, kv_heads_ * d, kv_heads_ * d});
  const auto batch_first = [&](const std::string& name, const Tensor& x, std::int64_t heads) {
    return view(tape, clone(tape, name, transpose(tape, x, 0, 1)), {b_, s_, heads, d});
  };
  return {batch_first("attention.q_copy", parts[0], heads_),
          batch_first("attention.k_copy", parts[1], kv_heads_),
          batch_first("attention.v_copy", parts[2], kv_heads_)};
}

Tensor MegatronModel::packed_attention(Tape& tape, const Tensor& x) const {
  const std::int64_t d = model_.head_dim;
  const Tensor qkv = column(tape, "attention.qkv", x, (heads_ + 2 * kv_heads_) * d);
  const Heads heads = unpacked(tape, qkv);
  const Sizes one{1, b_, s_, kv_heads_, d};
  const Tensor joined = concatenate(tape, "attention.join_kv",
                                    {view(tape, heads.k, one), view(tape, heads.v, one)}, 0);
  const Tensor kv = clone(tape, "attention.kv_copy", permute(tape, joined, {1, 2, 0, 3, 4}));
  const Tensor q = rope_in_place(tape, "rotary.q", heads.q, s_);
  const auto parts = unbind(tape, "attention.split_kv", kv, 2);
  const Tensor k = rope_in_place(tape, "rotary.k", parts[0], s_);
  sequence_bounds(tape, "attention.bounds", b_, s_);
  const auto by_head = [&](const Tensor& part) { return permute(tape, part, {0, 2, 1, 3}); };
  const AttentionInput input{by_head(q), by_head(k), by_head(parts[1])};
  const Tensor context = core_attention(tape, step_, input, {});
  const Tensor merged =
      contiguous(tape, "attention.output_copy", permute(tape, context, {2, 0, 1, 3}));
  return row(tape, "attention.output", view(tape, merged, {s_, b_, heads_ * d}));
}

}  // namespace tessera
