// MPT: Hugging Face transformers 4.35, models/mpt/modeling_mpt.py, eager attention: ALiBi always,
// no biases.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace mpt {
namespace {

/// scores + alibi, which is fp32 and makes the sum fp32: one kernel; backward casts the gradient.
Tensor add_alibi(Tape& tape, const std::string& name, const Tensor& scores, const Tensor& alibi) {
  const Tensor sum = map(tape, name, {scores, alibi});
  tape.differentiable({scores}, sum, [=](Tape& t, auto gradients) {
    t.add_gradient(scores, cast(t, name + ".cast", gradients[0], scores.precision));
  });
  return sum;
}

/// softmax(q k^T + alibi) v of [b, heads, s, d].
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t s = step.sequence_length;
  const Tensor scores = matmul(tape, "attention.scores", input.q, transpose(tape, input.k, 2, 3));
  const Tensor scaled = scale(tape, "attention.scale", scores);
  const Tensor alibi = tape.input("attention.alibi", {model.heads, 1, s}, Precision::fp32);
  const Tensor biased = add_alibi(tape, "attention.alibi_add", scaled, alibi);
  const Tensor mask = tape.input("attention.mask", {step.micro_batch, 1, s, s}, Precision::int8);
  const Tensor masked =
      masked_fill_(tape, "attention.mask", clone(tape, "attention.mask.clone", biased), mask);
  const Tensor weights = cast(tape, "attention.softmax.to_16_bit",
                              softmax(tape, "attention.softmax", masked), input.v.precision);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  return matmul(tape, "attention.context", dropped, input.v);
}

Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t inner = model.heads * model.head_dim;
  const Tensor qkv = linear(tape, "attention.qkv", x, 3 * inner, Bias::none);
  const auto parts = chunk_last(tape, "attention.qkv", qkv, 3);
  const auto heads = [&](const Tensor& part) {
    return transpose(tape, view(tape, part, {b, s, model.heads, model.head_dim}), 1, 2);
  };
  const AttentionInput input{heads(parts[0]), heads(parts[1]), heads(parts[2])};
  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor merged =
      contiguous(tape, "attention.merge_heads", permute(tape, context, {0, 2, 1, 3}));
  return linear(tape, "attention.output", view(tape, merged, {b, s, inner}), model.hidden,
                Bias::none);
}

Tensor feed_forward(Tape& tape, const ModelSpec& model, const Tensor& x) {
  const Tensor wide = linear(tape, "mlp.up", x, model.ffn, Bias::none);
  const Tensor active = activate(tape, "mlp.activation", model.activation, wide);
  return linear(tape, "mlp.down", active, model.hidden, Bias::none);
}

/// Slopes of the heads times positions (`build_mpt_alibi_tensor`) and the causal mask, once per
/// step.
void build_biases(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const Tensor places = computed_table(tape, "alibi.arange", {s}, Precision::int64, {});
  const Tensor powers = computed_table(tape, "alibi.pow", {model.heads, 1, 1}, Precision::fp32, {});
  const Tensor slopes =
      computed_table(tape, "alibi.reciprocal", {model.heads, 1, 1}, Precision::fp32, {powers});
  tape.shared_output(
      computed_table(tape, "alibi.mul", {model.heads, 1, s}, Precision::fp32, {places, slopes}));
  const Tensor seen = computed_table(tape, "mask.ones", {b, s}, Precision::int64, {});
  const Tensor later = computed_table(tape, "mask.lt", {s, s}, Precision::int8, {places});
  const Tensor padding = computed_table(tape, "mask.not", {b, s}, Precision::int8, {seen});
  tape.shared_output(
      computed_table(tape, "mask.or", {b, 1, s, s}, Precision::int8, {padding, later}));
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor table = input_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor ids =
      tape.input("tokens", {step.micro_batch, step.sequence_length}, Precision::int64);
  const Tensor words = embedding(tape, "embedding.tokens", table, ids);
  build_biases(tape, model, step);
  tape.output(words);
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const double p = active_dropout(step, model.hidden_dropout);
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const Tensor normalized = layer_norm(t, "norm_1", x, NormTerms::weight);
    const Tensor attended = attention(t, model, step, normalized);
    const Tensor middle =
        add(t, "attention.residual", dropout(t, "attention.resid_dropout", attended, p), x);
    const Tensor again = layer_norm(t, "norm_2", middle, NormTerms::weight);
    const Tensor changed = feed_forward(t, model, again);
    return add(t, "mlp.residual", dropout(t, "mlp.dropout", changed, p), middle);
  });
}

void head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor normalized = layer_norm(tape, "norm_f", x, NormTerms::weight);
  const Tensor table = output_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  finish_with_logits(tape, step,
                     linear_over_last(tape, "lm_head", normalized, table, {.full_precision = true}),
                     true);
}

}  // namespace
}  // namespace mpt

ModelGraph mpt_blocks(const ModelSpec& model, const StepOptions& step) {
  return decoder_of(model, step, mpt::embed, mpt::layer, mpt::head);
}

}  // namespace tessera
