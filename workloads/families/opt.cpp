// OPT: Hugging Face transformers 4.35, models/opt/modeling_opt.py, eager attention.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace opt {
namespace {

/// Rows that the position table holds before position 0 (`OPTLearnedPositionalEmbedding.offset`).
constexpr std::int64_t kPositionOffset = 2;

Sizes mask_sizes(const StepOptions& step) {
  return {step.micro_batch, 1, step.sequence_length, step.sequence_length};
}

/// softmax(max(q k^T + mask, lowest)) v of [b, heads, s, d].
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const Sizes merged_heads{b * model.heads, s, model.head_dim};
  const Tensor k_transposed = transpose(tape, view(tape, input.k, merged_heads), 1, 2);
  const Tensor scores =
      bmm(tape, "attention.scores", view(tape, input.q, merged_heads), k_transposed);
  const Tensor mask = tape.input("attention.mask", mask_sizes(step), tape.precision());
  const Tensor masked =
      add(tape, "attention.mask_add", view(tape, scores, {b, model.heads, s, s}), mask);
  const Tensor bounded = maximum_with_constant(tape, "attention.max", masked);
  const Tensor weights =
      softmax(tape, "attention.softmax", view(tape, bounded, {b * model.heads, s, s}));
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  const Tensor context = bmm(tape, "attention.context", dropped, view(tape, input.v, merged_heads));
  return view(tape, context, {b, model.heads, s, model.head_dim});
}

Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t inner = model.heads * model.head_dim;
  const auto heads = [&](const std::string& name, const Tensor& part) {
    const Tensor split = view(tape, part, {b, s, model.heads, model.head_dim});
    return contiguous(tape, name, transpose(tape, split, 1, 2));
  };
  const Tensor q_scaled = scale(tape, "attention.q_scale", linear(tape, "attention.q", x, inner));
  const Tensor k = heads("attention.k_copy", linear(tape, "attention.k", x, inner));
  const Tensor v = heads("attention.v_copy", linear(tape, "attention.v", x, inner));
  const AttentionInput input{heads("attention.q_copy", q_scaled), k, v};
  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor by_token = transpose(tape, context, 1, 2);
  return linear(tape, "attention.output", reshape(tape, by_token, {b, s, inner}), model.hidden);
}

/// Causal and padding masks, merged once per step (`_make_causal_mask`, `_expand_mask`). The
/// padding mask is an expanded [b,1,1,s]: what reads it moves a row, not a matrix.
void build_mask(Tape& tape, const StepOptions& step) {
  const std::int64_t s = step.sequence_length;
  const Tensor causal = tape.make("mask.causal", StridedShape({s, s}));
  tape.launch("mask.full", pointwise_kernel(causal, 0, KernelKind::fill), {}, {causal});
  const Tensor positions = tape.make("mask.arange", StridedShape({s}), Precision::int64);
  tape.launch("mask.arange", pointwise_kernel(positions, 0, KernelKind::fill), {}, {positions});
  const Tensor next = tape.make("mask.next", StridedShape({s}), Precision::int64);
  tape.launch("mask.next", pointwise_kernel(next, 1), {positions}, {next});
  const Tensor below = tape.make("mask.lt", StridedShape({s, s}), Precision::int8);
  tape.launch("mask.lt", pointwise_kernel(below, 1), {positions, next}, {below});
  map_in_place(tape, "mask.masked_fill", causal, {below}, 0);
  const Tensor padding = tape.input("mask.tokens", {step.micro_batch, 1, 1, s}, tape.precision());
  const Tensor expanded = tape.alias(padding, padding.shape.expanded(mask_sizes(step)));
  const Tensor inverted = map(tape, "mask.sub", {expanded});
  const Tensor masked = tape.make("mask.bool", inverted.shape, Precision::int8);
  tape.launch("mask.bool", pointwise_kernel(masked, 1), {inverted}, {masked});
  const Tensor filled = map(tape, "mask.clone", {inverted});
  map_in_place(tape, "mask.masked_fill", filled, {masked}, 0);
  add_in_place(tape, "mask.add", filled, causal);
  tape.shared_output(filled);
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Sizes tokens{step.micro_batch, step.sequence_length};
  const Tensor table = input_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor positions =
      tape.parameter("embedding.positions", {model.max_positions + kPositionOffset, model.hidden});
  const Tensor ids = tape.input("tokens", tokens, Precision::int64);
  const Tensor words = embedding(tape, "embedding.tokens", table, ids);
  build_mask(tape, step);
  const Tensor mask = tape.input("attention_mask", tokens, Precision::int64);
  Tensor place = tape.make("position_ids", mask.shape, Precision::int64);
  tape.launch("position_ids.cumsum", pointwise_kernel(place, 1), {mask}, {place});
  for (const char* name : {"position_ids.mul", "position_ids.sub", "position_ids.add"}) {
    map_in_place(tape, name, place, {});
  }
  const Tensor places = embedding(tape, "embedding.positions", positions, place);
  tape.output(add(tape, "embedding.add", words, places));
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const double p = active_dropout(step, model.hidden_dropout);
  const std::int64_t tokens = step.micro_batch * step.sequence_length;
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const Tensor attended = attention(t, model, step, layer_norm(t, "ln_attention", x));
    const Tensor middle =
        add(t, "attention.residual", x, dropout(t, "attention.resid_dropout", attended, p));
    const Tensor flat = view(t, middle, {tokens, model.hidden});
    const Tensor wide = linear(t, "mlp.up", layer_norm(t, "ln_mlp", flat), model.ffn);
    const Tensor active = activate(t, "mlp.activation", model.activation, wide);
    const Tensor changed = linear(t, "mlp.down", active, model.hidden);
    const Tensor sum = add(t, "mlp.residual", flat, dropout(t, "mlp.dropout", changed, p));
    return view(t, sum, x.sizes());
  });
}

}  // namespace
}  // namespace opt

ModelGraph opt_blocks(const ModelSpec& model, const StepOptions& step) {
  return decoder_of(model, step, opt::embed, opt::layer, decoder_head);
}

}  // namespace tessera
