// GPT-2 and GPT-3: Hugging Face transformers 4.35, models/gpt2/modeling_gpt2.py, eager attention.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace gpt2 {
namespace {

Tensor conv1d(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out) {
  return linear(tape, name, x, out, Bias::epilogue, WeightOrder::in_out);
}

/// softmax(q k^T) v of [b, heads, s, d].
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t s = step.sequence_length;
  const Tensor scores = matmul(tape, "attention.scores", input.q, transpose(tape, input.k, 2, 3));
  const Tensor scaled = divide_by_constant(tape, "attention.scale", scores);
  const Tensor causal = tape.input("attention.causal_mask", {1, 1, s, s}, Precision::int8);
  const Tensor masked = where(tape, "attention.mask", causal, scaled);
  const Tensor weights = softmax(tape, "attention.softmax", masked);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  return matmul(tape, "attention.context", dropped, input.v);
}

Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t inner = model.heads * model.head_dim;
  const Tensor qkv = conv1d(tape, "attention.qkv", x, 3 * inner);
  const auto parts = chunk_last(tape, "attention.qkv", qkv, 3);
  const auto heads = [&](const Tensor& part) {
    return view(tape, part, {b, s, model.heads, model.head_dim});
  };
  const Tensor q = permute(tape, heads(parts[0]), {0, 2, 1, 3});
  const Tensor k = permute(tape, heads(parts[1]), {0, 2, 1, 3});
  const AttentionInput input{q, k, permute(tape, heads(parts[2]), {0, 2, 1, 3})};

  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor merged =
      contiguous(tape, "attention.merge_heads", permute(tape, context, {0, 2, 1, 3}));
  return conv1d(tape, "attention.output", view(tape, merged, {b, s, inner}), model.hidden);
}

Tensor feed_forward(Tape& tape, const ModelSpec& model, const Tensor& x) {
  const Tensor wide = conv1d(tape, "mlp.up", x, model.ffn);
  const Tensor active = activate(tape, "mlp.activation", model.activation, wide);
  return conv1d(tape, "mlp.down", active, model.hidden);
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const Tensor table = input_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor ids = tape.input("tokens", {b, s}, Precision::int64);
  Tensor sum = embedding(tape, "embedding.tokens", table, ids);
  if (model.max_positions > 0) {
    const Tensor positions =
        tape.parameter("embedding.positions", {model.max_positions, model.hidden});
    const Tensor position_ids = tape.input("position_ids", {1, s}, Precision::int64);
    const Tensor places = embedding(tape, "embedding.positions", positions, position_ids);
    sum = add(tape, "embedding.add", sum, places);
  }
  tape.output(dropout(tape, "embedding.dropout", sum, active_dropout(step, model.hidden_dropout)));
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const double p = active_dropout(step, model.hidden_dropout);
  // registered per layer as a bool buffer over all positions
  if (step.framework.mask_buffers)
    tape.buffer("attention.bias", {model.max_positions, model.max_positions}, Precision::int8);
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const Tensor attended = attention(t, model, step, layer_norm(t, "ln_1", x));
    const Tensor middle =
        add(t, "attention.residual", dropout(t, "attention.resid_dropout", attended, p), x);
    const Tensor changed = feed_forward(t, model, layer_norm(t, "ln_2", middle));
    return add(t, "mlp.residual", middle, dropout(t, "mlp.dropout", changed, p));
  });
}

}  // namespace
}  // namespace gpt2

ModelGraph gpt2_blocks(const ModelSpec& model, const StepOptions& step) {
  return decoder_of(model, step, gpt2::embed, gpt2::layer, decoder_head);
}

}  // namespace tessera
