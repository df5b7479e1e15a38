// BERT: Hugging Face transformers 4.35, models/bert/modeling_bert.py. Training has the pre-training
// heads, inference a sequence classifier with two classes.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/loss/cross_entropy.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace bert {
namespace {

/// Next-sentence prediction, and the classifier's default.
constexpr std::int64_t kClasses = 2;

/// softmax(q k^T + mask) v of [b, heads, s, d].
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const Tensor scores = matmul(tape, "attention.scores", input.q, transpose(tape, input.k, 2, 3));
  const Tensor scaled = scale(tape, "attention.scale", scores);
  const Tensor mask = tape.input("attention.mask", {b, 1, 1, s}, tape.precision());
  const Tensor masked = add(tape, "attention.mask_add", scaled, mask);
  const Tensor weights = softmax(tape, "attention.softmax", masked);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  return matmul(tape, "attention.context", dropped, input.v);
}

Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t inner = model.heads * model.head_dim;
  const auto heads = [&](const Tensor& part) {
    return permute(tape, view(tape, part, {b, s, model.heads, model.head_dim}), {0, 2, 1, 3});
  };
  const Tensor q_flat = linear(tape, "attention.q", x, inner);
  const Tensor k = heads(linear(tape, "attention.k", x, inner));
  const Tensor v = heads(linear(tape, "attention.v", x, inner));
  const Tensor q = heads(q_flat);

  const AttentionInput input{q, k, v, false};
  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor merged =
      contiguous(tape, "attention.merge_heads", permute(tape, context, {0, 2, 1, 3}));
  return linear(tape, "attention.output", view(tape, merged, {b, s, inner}), model.hidden);
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  // A head of a few outputs has no use for the table.
  const bool tied = model.tied_embeddings && model.outputs == 0 && step.mode != StepMode::inference;
  const Tensor padding = tape.input("attention_mask", {b, 1, 1, s}, tape.precision());
  map(tape, "mask.mul", {map(tape, "mask.sub", {padding})});
  const auto look_up = [&](const std::string& name, const Tensor& table, std::int64_t rows) {
    const Tensor ids = tape.input(name + ".ids", {rows, s}, Precision::int64);
    return embedding(tape, name, table, ids);
  };
  const Tensor words =
      look_up("embedding.tokens", input_embedding(tape, tied, model.vocab, model.hidden), b);
  const Tensor types = look_up(
      "embedding.types", tape.parameter("embedding.types", {model.token_types, model.hidden}), b);
  const Tensor sum = add(tape, "embedding.add_types", words, types);
  const Tensor places =
      look_up("embedding.positions",
              tape.parameter("embedding.positions", {model.max_positions, model.hidden}), 1);
  const Tensor all = add(tape, "embedding.add_positions", sum, places);
  const Tensor normalized = layer_norm(tape, "embedding.norm", all);
  tape.output(
      dropout(tape, "embedding.dropout", normalized, active_dropout(step, model.hidden_dropout)));
}

/// The first layer of a feed-forward, or of the head that predicts words: NVIDIA's BERT
/// (DeepLearningExamples, LinearActivation; recalled) leaves its bias to the function that holds
/// the activation, where training adds it by a kernel of its own.
Tensor activated(Tape& tape, const std::string& name, const std::string& activation,
                 const ModelSpec& model, const StepOptions& step, const Tensor& x,
                 std::int64_t out) {
  if (!step.framework.feed_forward_bias_apart)
    return activate(tape, activation, model.activation, linear(tape, name, x, out));
  const Tensor product = linear(tape, name, x, out, Bias::none);
  const Tensor bias = tape.parameter(name + ".bias", {out});
  return activate(tape, activation, model.activation, add(tape, name + ".bias_add", product, bias));
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const double p = active_dropout(step, model.hidden_dropout);
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const Tensor attended = dropout(t, "attention.out_dropout", attention(t, model, step, x), p);
    const Tensor middle =
        layer_norm(t, "attention.norm", add(t, "attention.residual", attended, x));
    const Tensor wide = activated(t, "mlp.up", "mlp.activation", model, step, middle, model.ffn);
    const Tensor changed = dropout(t, "mlp.dropout", linear(t, "mlp.down", wide, model.hidden), p);
    return layer_norm(t, "mlp.norm", add(t, "mlp.residual", changed, middle));
  });
}

Tensor pooled(Tape& tape, const ModelSpec& model, const Tensor& x) {
  const Tensor first = select_first(tape, "pooler.first_token", x, 1);
  const Tensor dense = linear(tape, "pooler.dense", first, model.hidden);
  return tanh(tape, "pooler.tanh", dense);
}

void classification_head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor sentence = pooled(tape, model, x);
  tape.keep(linear(tape, "classifier", sentence, kClasses));
}

/// BertForQuestionAnswering: a loss over the positions for each output.
void span_head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor all = linear(tape, "qa_outputs", x, model.outputs);
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(model.outputs), 1);
  for (const Tensor& part : split_last(tape, "qa_outputs.split", all, sizes)) {
    const Tensor logits = contiguous(tape, "qa_outputs.contiguous", part);
    finish_with_logits(tape, step, view(tape, logits, {step.micro_batch, step.sequence_length}));
  }
}

void pre_training_head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor sentence = pooled(tape, model, x);
  const Tensor active =
      activated(tape, "predictions.dense", "predictions.activation", model, step, x, model.hidden);
  const Tensor normalized = layer_norm(tape, "predictions.norm", active);
  const Tensor table = output_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor bias = tape.parameter("predictions.decoder.bias", {model.vocab});
  const Tensor logits = linear_with(tape, "predictions.decoder", normalized, table, bias);
  const Tensor relation = linear(tape, "seq_relationship", sentence, kClasses);
  finish_with_logits(tape, step, logits);
  finish_with_logits(tape, step, relation);
}

}  // namespace
}  // namespace bert

ModelGraph bert_blocks(const ModelSpec& model, const StepOptions& step) {
  if (model.outputs > 0) return decoder_of(model, step, bert::embed, bert::layer, bert::span_head);
  const auto head =
      step.mode == StepMode::inference ? bert::classification_head : bert::pre_training_head;
  return decoder_of(model, step, bert::embed, bert::layer, head);
}

}  // namespace tessera
