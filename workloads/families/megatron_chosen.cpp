// DeepSeek sparse attention (DeepSeek V3.2, GLM-5): an indexer chooses the tokens that latent
// attention sees. Queries are absorbed: multiplied by what makes keys of the rank, so that all
// heads read one row per token, as the kernels of it have it; what makes values multiplies what
// they give. The indexer reads the hidden state and the queries' rank without gradients to them.
// Sources: DeepSeek-AI, "DeepSeek-V3.2", 2025; inference/model.py beside its weights, Indexer and
// MLA; Megatron-Core transformer/experimental_attention_variant/dsa.py (all recalled).
#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/ops/attention/chosen_tokens.h"
#include "workloads/ops/attention/latent.h"
#include "workloads/ops/linear.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// x [s, b, heads, in] times a matrix [in, out] of each head's own, as torch.einsum runs it: a
/// batched product, whose result lies head by head and is copied.
Tensor by_head(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out) {
  const std::int64_t heads = x.sizes()[2], in = x.shape.last();
  const std::int64_t tokens = x.sizes()[0] * x.sizes()[1];
  const Tensor weight = tape.parameter(name + ".weight", {heads, in, out});
  const Tensor rows = permute(tape, view(tape, x, {tokens, heads, in}), {1, 0, 2});
  const Tensor made = permute(tape, bmm(tape, name, rows, weight), {1, 0, 2});
  return view(tape, contiguous(tape, name + ".copy", made),
              {x.sizes()[0], x.sizes()[1], heads, out});
}

/// The same memory, to which no gradient goes.
Tensor detached(Tape& tape, const Tensor& x) {
  return tape.alias(x, x.shape);
}

}  // namespace

/// Turns `rope` of the numbers of x [s, b, heads, d].
Tensor MegatronModel::turned_part(Tape& tape, const std::string& name, const Tensor& x) const {
  const std::int64_t rope = model_.rope_dim;
  if (profile_.fused_rope) return rotated_part(tape, name, x, rope, s_);
  const auto parts = split_last(tape, name + ".split", x, {x.shape.last() - rope, rope});
  return concatenate_last(tape, name + ".join", parts[0], turned(tape, name, parts[1]));
}

/// Of parts that tensor-parallel ranks hold: all of it.
Tensor MegatronModel::whole_sequence_of(Tape& tape, const std::string& name,
                                        const Tensor& part) const {
  return parts_ > 1 ? gather_sequence(tape, name, part, parts_) : part;
}

/// Of `x`, the hidden state, and `source`, the rank that queries come from. Every tensor-parallel
/// rank has the whole indexer and runs it over the whole sequence.
IndexOperands MegatronModel::index_operands(Tape& tape, const Tensor& x,
                                            const Tensor& source) const {
  const std::int64_t heads = model_.index_heads, d = model_.index_head_dim;
  const Tensor hidden = whole_sequence_of(tape, "index.hidden", detached(tape, x));
  const Tensor rank = whole_sequence_of(tape, "index.rank", detached(tape, source));
  const auto project = [&](const std::string& name, const Tensor& from, std::int64_t out,
                           bool exact = false) {
    const Tensor weight = tape.parameter(name + ".weight", {out, from.shape.last()});
    return linear_over_last(tape, name, from, weight, {.full_precision = exact});
  };
  const Tensor q = view(tape, project("index.q", rank, heads * d), {s_, b_, heads, d});
  const Tensor k = layer_norm(tape, "index.k_norm", project("index.k", hidden, d));
  const Tensor k_turned = turned_part(tape, "index.rotary.k", view(tape, k, {s_, b_, 1, d}));
  const Tensor share = project("index.weights", hidden, heads, true);
  return {hadamard(tape, "index.q.hadamard", turned_part(tape, "index.rotary.q", q)),
          view(tape, hadamard(tape, "index.k.hadamard", k_turned), {s_, b_, d}),
          scale(tape, "index.weights.scale",
                cast(tape, "index.weights.float", share, Precision::fp32))};
}

/// Queries of all heads against rows of the rank and the turned part.
Tensor MegatronModel::absorbed_queries(Tape& tape, const Tensor& source) const {
  const std::int64_t d = model_.head_dim, rope = model_.rope_dim;
  const Tensor q = turned_part(
      tape, "rotary.q",
      view(tape, column(tape, "attention.q_up", source, heads_ * d), {s_, b_, heads_, d}));
  const auto parts = split_last(tape, "attention.q_split", q, {d - rope, rope});
  const Tensor absorbed = by_head(tape, "attention.k_up", parts[0], model_.kv_rank);
  return concatenate_last(tape, "attention.q_join", absorbed, parts[1]);
}

/// [s, b, heads * v].
Tensor MegatronModel::chosen_attention(Tape& tape, const Tensor& x) const {
  const std::int64_t rope = model_.rope_dim, rank = model_.kv_rank;
  const Tensor source = query_source(tape, x);
  const Tensor weight = tape.parameter("attention.kv_down.weight", {rank + rope, model_.hidden});
  const auto parts =
      split_last(tape, "attention.kv_down",
                 linear_over_last(tape, "attention.kv_down", x, weight, {}), {rank, rope});
  const Tensor latent = whole_sequence_of(
      tape, "attention.kv",
      norm(tape, "attention.kv_norm", contiguous(tape, "attention.kv_copy", parts[0])));
  const Tensor key = shared_key(tape, parts[1]);
  const auto make_queries = [=, this](Tape& t) { return absorbed_queries(t, source); };
  const Tensor q = step_.recomputes("mla_up_proj") ? tape.remade(make_queries) : make_queries(tape);
  const Tensor one = turned(tape, "rotary.k", view(tape, key, {s_, b_, 1, rope}));
  const Tensor kv =
      concatenate_last(tape, "attention.kv_join", latent, view(tape, one, {s_, b_, rope}));
  const IndexOperands index = index_operands(tape, x, source);
  const ChosenTokens chosen{rank, model_.index_topk,
                            model_.index_loss && step_.mode == StepMode::training, tensor_};
  const auto core = [=](Tape& t) {
    return attention_to_chosen(t, "attention.sparse", {q, kv}, index, chosen);
  };
  const Tensor given = recomputes_attention_alone(step_)
                           ? tape.checkpoint({q, kv, index.q, index.k, index.weights}, core)
                           : core(tape);
  const std::int64_t v = value_dim_of(model_);
  return view(tape, by_head(tape, "attention.v_up", given, v), {s_, b_, heads_ * v});
}

}  // namespace tessera
