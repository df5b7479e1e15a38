// Llama: Hugging Face transformers 4.35, models/llama/modeling_llama.py, eager attention.
#include "workloads/families/families.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// (-second half, first half): a negation and a concatenation.
Tensor rotate_half(Tape& tape, const std::string& name, const Tensor& x) {
  const std::int64_t half = x.shape.last() / 2;
  const Tensor first = slice_last(tape, name + ".first_half", x, half);
  const Tensor second = slice_last(tape, name + ".second_half", x, half);
  return concatenate_last(tape, name + ".cat", negate(tape, name + ".neg", second), first);
}

/// Rotary position embedding of [b, heads, s, d] with tables [1, 1, s, d].
Tensor rotated(Tape& tape, const std::string& name, const Tensor& x, const Tensor& cosine,
               const Tensor& sine) {
  const Tensor straight = multiply(tape, name + ".cos", x, cosine);
  const Tensor turned = multiply(tape, name + ".sin", rotate_half(tape, name, x), sine);
  return add(tape, name + ".add", straight, turned);
}

/// Every key/value head once per query head of its group: a copy unless there is one.
Tensor repeat_heads(Tape& tape, const std::string& name, const Tensor& x, std::int64_t repeats) {
  if (repeats == 1) return x;
  const Sizes& n = x.sizes();
  const Tensor grouped = view(tape, x, {n[0], n[1], 1, n[2], n[3]});
  const Tensor expanded = expand(tape, name, grouped, {n[0], n[1], repeats, n[2], n[3]});
  return reshape(tape, expanded, {n[0], n[1] * repeats, n[2], n[3]});
}

Tensor rotary_table(Tape& tape, const ModelSpec& model, const StepOptions& step,
                    const std::string& name) {
  const std::int64_t s = step.sequence_length;
  const Tensor table = tape.input(name, {s, model.head_dim}, Precision::fp32);
  const Tensor ids = tape.input("position_ids", {1, 1, s}, Precision::int64);
  return embedding(tape, name, table, ids);
}

Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t d = model.head_dim;
  const auto project = [&](const std::string& name, std::int64_t heads) {
    const Tensor flat = linear(tape, name, x, heads * d, Bias::none);
    return transpose(tape, view(tape, flat, {b, s, heads, d}), 1, 2);
  };
  const Tensor q = project("attention.q", model.heads);
  const Tensor k = project("attention.k", model.kv_heads);
  const Tensor v = project("attention.v", model.kv_heads);
  const Tensor cosine = rotary_table(tape, model, step, "rotary.cos");
  const Tensor sine = rotary_table(tape, model, step, "rotary.sin");
  const std::int64_t group = model.heads / model.kv_heads;
  const Tensor q_rotated = rotated(tape, "rotary.q", q, cosine, sine);
  const Tensor k_all =
      repeat_heads(tape, "attention.k_repeat", rotated(tape, "rotary.k", k, cosine, sine), group);
  const Tensor v_all = repeat_heads(tape, "attention.v_repeat", v, group);

  const Tensor scores = matmul(tape, "attention.scores", q_rotated, transpose(tape, k_all, 2, 3));
  const Tensor scaled = scale(tape, "attention.scale", scores);
  const Tensor mask = tape.input("attention.mask", {b, 1, s, s}, Precision::fp32);
  const Tensor masked = add(tape, "attention.mask_add", scaled, mask);
  const Tensor weights = softmax(tape, "attention.softmax", masked);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  const Tensor context = matmul(tape, "attention.context", dropped, v_all);
  const Tensor merged = contiguous(tape, "attention.merge_heads", transpose(tape, context, 1, 2));
  return linear(tape, "attention.output", view(tape, merged, {b, s, model.heads * d}), model.hidden,
                Bias::none);
}

Tensor feed_forward(Tape& tape, const ModelSpec& model, const Tensor& x) {
  const Tensor gate = linear(tape, "mlp.gate", x, model.ffn, Bias::none);
  const Tensor active = silu(tape, "mlp.silu", gate);
  const Tensor up = linear(tape, "mlp.up", x, model.ffn, Bias::none);
  const Tensor product = multiply(tape, "mlp.gated", active, up);
  return linear(tape, "mlp.down", product, model.hidden, Bias::none);
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor table = input_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor ids =
      tape.input("tokens", {step.micro_batch, step.sequence_length}, Precision::int64);
  tape.output(embedding(tape, "embedding.tokens", table, ids));
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor attended = attention(tape, model, step, rms_norm(tape, "input_norm", x));
  const Tensor middle = add(tape, "attention.residual", x, attended);
  const Tensor changed = feed_forward(tape, model, rms_norm(tape, "mlp_norm", middle));
  tape.output(add(tape, "mlp.residual", middle, changed));
}

void head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor normalized = rms_norm(tape, "final_norm", x);
  const Tensor table = output_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  finish_with_logits(tape, step, linear_with(tape, "lm_head", normalized, table));
}

}  // namespace

ModelGraph llama_blocks(const ModelSpec& model, const StepOptions& step) {
  return decoder_sequence(
      record_block("embedding", step, [&](Tape& tape) { embed(tape, model, step); }),
      record_block("layer", step, [&](Tape& tape) { layer(tape, model, step); }),
      record_block("head", step, [&](Tape& tape) { head(tape, model, step); }), model.layers);
}

}  // namespace tessera
