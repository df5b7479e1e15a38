// GPT of Megatron-Core r0.5.0, `--transformer-impl local`: megatron/model/transformer.py,
// language_model.py and gpt_model.py. Activations are [s, b, h]; no sequence parallelism, no
// recomputation, fp32.
#include "workloads/families/families.h"
#include "workloads/families/recording.h"
#include "workloads/families/vocabulary.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// What one tensor-parallel rank holds.
class MegatronGpt {
 public:
  MegatronGpt(const ModelSpec& model, const StepOptions& step)
      : model_(model),
        step_(step),
        s_(step.sequence_length),
        b_(step.micro_batch),
        tensor_(step.layout.tensor),
        heads_(model.heads / tensor_),
        ffn_(model.ffn / tensor_),
        vocab_(padded_vocabulary(model.vocab, tensor_) / tensor_),
        tied_(model.tied_embeddings && step.layout.pipeline == 1) {}

  void embed(Tape& tape) const;
  void layer(Tape& tape) const;
  void head(Tape& tape) const;
  /// baddbmm's unread input and the causal mask, in Megatron's global memory buffer.
  Bytes shared_buffers() const { return Bytes(4 * b_ * heads_ * s_ * s_ + s_ * s_); }
  /// This rank's part of the word embedding.
  Bytes table_bytes() const { return Bytes(4 * vocab_ * model_.hidden); }

 private:
  Tensor attention(Tape& tape, const Tensor& x) const;
  Tensor bias(Tape& tape, const std::string& name, std::int64_t size) const {
    return tape.parameter(name + ".bias", {size});
  }
  Tensor column(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out) const {
    const Tensor weight = tape.parameter(name + ".weight", {out, x.shape.last()});
    return column_parallel_linear(tape, name, x, weight, tensor_);
  }
  Tensor row(Tape& tape, const std::string& name, const Tensor& x) const {
    const Tensor weight = tape.parameter(name + ".weight", {model_.hidden, x.shape.last()});
    return row_parallel_linear(tape, name, x, weight, tensor_);
  }

  const ModelSpec& model_;
  const StepOptions& step_;
  std::int64_t s_, b_;
  int tensor_;
  std::int64_t heads_, ffn_, vocab_;  ///< of this rank
  bool tied_;                         ///< first and last stage are the same
};

void MegatronGpt::embed(Tape& tape) const {
  const Tensor table = input_embedding(tape, tied_, vocab_, model_.hidden);
  const Tensor positions =
      tape.parameter("embedding.positions", {model_.max_positions, model_.hidden});
  const Tensor ids = tape.input("tokens", {b_, s_}, Precision::int64);
  const Tensor position_ids = tape.input("position_ids", {b_, s_}, Precision::int64);
  const Tensor words = vocab_parallel_embedding(tape, "embedding.tokens", table, ids, tensor_);
  const Tensor places = embedding(tape, "embedding.positions", positions, position_ids);
  const Tensor sum = add(tape, "embedding.add", words, places);
  const Tensor by_position = contiguous(tape, "embedding.transpose", transpose(tape, sum, 0, 1));
  tape.output(dropout(tape, "embedding.dropout", by_position,
                      active_dropout(step_, model_.hidden_dropout)));
}

Tensor MegatronGpt::attention(Tape& tape, const Tensor& x) const {
  const std::int64_t d = model_.head_dim;
  const std::int64_t inner = heads_ * d;
  const Tensor mixed = column(tape, "attention.qkv", x, 3 * inner);
  const Tensor qkv = add(tape, "attention.qkv_bias", mixed, bias(tape, "attention.qkv", 3 * inner));
  const auto parts = chunk_last(tape, "attention.qkv", view(tape, qkv, {s_, b_, heads_, 3 * d}), 3);
  const auto batched = [&](const Tensor& part) {
    return transpose(tape, view(tape, part, {s_, b_ * heads_, d}), 0, 1);
  };
  const Tensor q = batched(parts[0]);
  const Tensor k = batched(parts[1]);
  const Tensor v = batched(parts[2]);

  const Tensor scores = scaled_bmm(tape, "attention.scores", q, transpose(tape, k, 1, 2));
  const Tensor mask = tape.input("attention.mask", {1, 1, s_, s_}, Precision::int8);
  const Tensor masked =
      masked_fill_(tape, "attention.mask", view(tape, scores, {b_, heads_, s_, s_}), mask);
  const Tensor weights = softmax(tape, "attention.softmax", masked);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step_, model_.attention_dropout));
  const Tensor context =
      bmm(tape, "attention.context", view(tape, dropped, {b_ * heads_, s_, s_}), v);
  const Tensor by_position = permute(tape, view(tape, context, {b_, heads_, s_, d}), {2, 0, 1, 3});
  const Tensor merged = contiguous(tape, "attention.merge_heads", by_position);
  return row(tape, "attention.output", view(tape, merged, {s_, b_, inner}));
}

void MegatronGpt::layer(Tape& tape) const {
  const double p = active_dropout(step_, model_.hidden_dropout);
  const Tensor x = tape.block_input("hidden", {s_, b_, model_.hidden});
  const Tensor attended = attention(tape, layer_norm(tape, "ln_attention", x));
  const Tensor middle = bias_dropout_add(tape, "attention.bias_dropout_add", attended,
                                         bias(tape, "attention.output", model_.hidden), x, p);
  const Tensor wide = column(tape, "mlp.up", layer_norm(tape, "ln_mlp", middle), ffn_);
  const Tensor active = bias_gelu(tape, "mlp.bias_gelu", wide, bias(tape, "mlp.up", ffn_));
  const Tensor changed = row(tape, "mlp.down", active);
  tape.output(bias_dropout_add(tape, "mlp.bias_dropout_add", changed,
                               bias(tape, "mlp.down", model_.hidden), middle, p));
}

void MegatronGpt::head(Tape& tape) const {
  const Tensor x = tape.block_input("hidden", {s_, b_, model_.hidden});
  const Tensor normalized = layer_norm(tape, "ln_f", x);
  const Tensor table = output_embedding(tape, tied_, vocab_, model_.hidden);
  const Tensor logits = column_parallel_linear(tape, "lm_head", normalized, table, tensor_);
  if (step_.mode == StepMode::inference) return tape.keep(logits);
  tape.set_phase(Phase::loss);
  const Tensor labels = tape.input("labels", {s_, b_}, Precision::int64);
  const Tensor losses = vocab_parallel_cross_entropy(tape, "loss", logits, labels, tensor_);
  tape.differentiate(mean_last(tape, "loss.mean", losses));
}

}  // namespace

std::int64_t padded_vocabulary(std::int64_t vocab, int tensor) {
  const std::int64_t multiple = 128LL * tensor;
  return (vocab + multiple - 1) / multiple * multiple;
}

ModelGraph megatron_gpt_blocks(const ModelSpec& model, const StepOptions& step) {
  const MegatronGpt gpt(model, step);
  ModelGraph graph = decoder_sequence(
      record_block("embedding", step, [&](Tape& tape) { gpt.embed(tape); }),
      record_block("layer", step, [&](Tape& tape) { gpt.layer(tape); }),
      record_block("head", step, [&](Tape& tape) { gpt.head(tape); }), model.layers);
  graph.shared_buffers = gpt.shared_buffers();
  if (model.tied_embeddings) graph.tied_table_bytes = gpt.table_bytes();
  return graph;
}

}  // namespace tessera
