// GPT and Llama of Megatron-Core r0.5.0: megatron/model/transformer.py, language_model.py and
// gpt_model.py; BLOOM as bigscience-workshop/Megatron-DeepSpeed changes them; with the kernels of
// Transformer Engine where the profile says so. Activations are [s, b, h], with sequence
// parallelism [s / tensor, b, h] between the split layers.
#include <cmath>

#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/experts.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {

Bytes MegatronModel::shared_buffers() const {
  const bool products = !uses_fused_attention(profile_) && !profile_.transformer_engine &&
                        !bloom_ &&                 // reads ALiBi there
                        !profile_.planned_memory;  // OneFlow's product has no third operand
  const std::int64_t unread = element_bytes(activation_precision(step_.precision));
  return Bytes((products ? unread * b_ * heads_ * s_ * s_ : 0) + b_ * s_ * s_);
}

Tensor MegatronModel::norm(Tape& tape, const std::string& name, const Tensor& x) const {
  if (!llama_) return layer_norm(tape, name, x);
  return root_mean_square_norm(tape, name, x, profile_);
}

void MegatronModel::embed(Tape& tape) const {
  const Tensor table = input_embedding(tape, tied_, vocab_, model_.hidden);
  const bool has_positions = model_.max_positions > 0 && !llama_;
  const Tensor positions =
      has_positions ? tape.parameter("embedding.positions", {model_.max_positions, model_.hidden})
                    : Tensor();
  const Tensor ids = tape.input("tokens", {b_, s_}, Precision::int64);
  const Tensor position_ids = tape.input("position_ids", {b_, s_}, Precision::int64);
  Tensor sum = vocab_parallel_embedding(tape, "embedding.tokens", table, ids, tensor_);
  if (bloom_) sum = layer_norm(tape, "embedding.norm", sum);  // --embed-layernorm
  if (has_positions) {
    const Tensor places = embedding(tape, "embedding.positions", positions, position_ids);
    sum = add(tape, "embedding.add", sum, places);
  }
  Tensor by_position = contiguous(tape, "embedding.transpose", transpose(tape, sum, 0, 1));
  if (parts_ > 1) by_position = split_sequence(tape, "embedding", by_position, parts_);
  tape.output(dropout(tape, "embedding.dropout", by_position,
                      active_dropout(step_, model_.hidden_dropout)));
}

/// Rows that every expert's buffer has for the `tokens` of one rank; 0: as many as come.
std::int64_t MegatronModel::expert_capacity(std::int64_t tokens) const {
  const double mean =
      static_cast<double>(tokens * model_.experts_per_token) / static_cast<double>(model_.experts);
  return static_cast<std::int64_t>(std::ceil(mean * step_.expert_capacity_factor));
}

/// All layers are sparse. Tensor-parallel ranks hold parts of each expert, and all send all tokens;
/// or whole experts, and each sends its part of the sequence (Megatron-Core's
/// --expert-tensor-parallel-size 1).
Tensor MegatronModel::experts(Tape& tape, const Tensor& part) const {
  const bool whole = step_.layout.whole_experts();
  const bool gathers = parts_ > 1 && !whole;
  const std::int64_t ffn = whole ? model_.ffn : ffn_;
  const Tensor x = gathers ? gather_sequence(tape, "mlp.router", part, parts_) : part;
  const std::int64_t k = model_.experts_per_token;
  const Tensor tokens = reshape(tape, x, {x.sizes()[0] * b_, model_.hidden});
  const std::int64_t capacity = expert_capacity(tokens.sizes()[0]);
  const RoutedTokens routed =
      route_to_experts(tape, "mlp.router", tokens, model_.experts, k, capacity,
                       parts_ > 1 ? 1 : tensor_);  // the gather's backward pass sums otherwise
  const std::int64_t rows = routed.rows.sizes()[0];
  const ExpertGroup group = busiest_expert_rank(rows, model_.experts, step_.layout.expert,
                                                capacity > 0 ? 1 : step_.expert_imbalance);
  const Tensor arrived = dispatch_rows(tape, "mlp.dispatch", routed.rows, group);
  const Tensor wide =
      expert_linear(tape, "mlp.experts.up", arrived, llama_ ? 2 * ffn : ffn, group.loads);
  const Tensor active = llama_ ? gated_silu(tape, "mlp.experts.swiglu", wide, profile_)
                               : gelu(tape, "mlp.experts.gelu", wide);
  const Tensor narrow = expert_linear(tape, "mlp.experts.down", active, model_.hidden, group.loads);
  const Tensor returned = return_rows(tape, "mlp.return", narrow, rows, group);
  const Tensor sum = combine_experts(tape, "mlp.combine", returned, routed, x.sizes());
  if (gathers) return reduce_scatter_sequence(tape, "mlp.combine", sum, parts_);
  if (whole) return sum;
  tensor_all_reduce(tape, "mlp.combine.all_reduce", sum, tensor_);
  return sum;
}

Tensor MegatronModel::feed_forward(Tape& tape, const Tensor& x) const {
  if (model_.experts > 0) return experts(tape, x);
  if (model_.activation == Activation::swiglu || model_.activation == Activation::silu) {
    const Tensor wide = column(tape, "mlp.up", x, 2 * ffn_);
    return row(tape, "mlp.down", gated_silu(tape, "mlp.swiglu", wide, profile_));
  }
  const Tensor wide = column(tape, "mlp.up", x, ffn_);
  return row(tape, "mlp.down", bias_gelu(tape, "mlp.bias_gelu", wide, bias(tape, "mlp.up", ffn_)));
}

Tensor MegatronModel::residual(Tape& tape, const std::string& name, const Tensor& x,
                               const Tensor& before) const {
  const double p = active_dropout(step_, model_.hidden_dropout);
  const bool experts_give = name == "mlp" && model_.experts > 0;  // without biases
  if (has_bias() && !experts_give) {
    const std::string linear = name == "attention" ? "attention.output" : "mlp.down";
    return bias_dropout_add(tape, name + ".bias_dropout_add", x, bias(tape, linear, model_.hidden),
                            before, p);
  }
  return add(tape, name + ".residual", before, dropout(tape, name + ".dropout", x, p));
}

Tensor MegatronModel::transformer_layer(Tape& tape, const Tensor& x) const {
  const Tensor attention_input = norm(tape, "ln_attention", x);
  const Tensor attended = attention(tape, attention_input);
  const Tensor middle = residual(tape, "attention", attended, x);
  const Tensor mlp_input = norm(tape, "ln_mlp", middle);
  tape.drop_names({attention_input});
  const Tensor fed = feed_forward(tape, mlp_input);
  const Tensor out = residual(tape, "mlp", fed, middle);
  tape.drop_names({attended, middle, mlp_input, fed});
  return out;
}

void MegatronModel::layer(Tape& tape) const {
  const Tensor x = tape.block_input("hidden", {s_ / parts_, b_, model_.hidden});
  recomputable_layer(tape, step_, x, [=, this](Tape& t) { return transformer_layer(t, x); });
}

void MegatronModel::head(Tape& tape) const {
  const Tensor x = tape.block_input("hidden", {s_ / parts_, b_, model_.hidden});
  const Tensor normalized = norm(tape, "ln_f", x);
  const Tensor table = output_embedding(tape, tied_, vocab_, model_.hidden);
  const Tensor logits = linear_over_last(tape, "lm_head", normalized, table,
                                         {.reduce_gradient_over = tensor_,
                                          .overlap_sum = profile_.overlap_tensor_gradients,
                                          .gather_input_over = parts_,
                                          .full_precision = true});
  if (step_.mode == StepMode::inference) return tape.keep(logits);
  tape.set_phase(Phase::loss);
  const Tensor labels = tape.input("labels", {s_, b_}, Precision::int64);
  const Tensor losses =
      vocab_parallel_cross_entropy(tape, "loss", cast(tape, "loss.float", logits, Precision::fp32),
                                   labels, tensor_, profile_.loss_in_place);
  tape.differentiate(mean_last(tape, "loss.mean", losses));
}

std::int64_t padded_vocabulary(std::int64_t vocab, int tensor) {
  const std::int64_t multiple = 128LL * tensor;
  return (vocab + multiple - 1) / multiple * multiple;
}

ModelGraph megatron_blocks(const ModelSpec& model, const StepOptions& step) {
  const MegatronModel megatron(model, step);
  ModelGraph graph = decoder_sequence(
      record_block("embedding", step, [&](Tape& tape) { megatron.embed(tape); }),
      record_block("layer", step, [&](Tape& tape) { megatron.layer(tape); }),
      record_block("head", step, [&](Tape& tape) { megatron.head(tape); }), model.layers);
  if (step.layout.tensor > 1)
    graph.blocks[1].partial_parameters = megatron.head_norm_parameters();  // each has some heads
  if (step.layout.sequence_parts() > 1) {
    graph.blocks[1].partial_parameters += megatron.partial_parameters();
    graph.blocks[2].partial_parameters = megatron.norm_parameters();
  }
  graph.shared_buffers = megatron.shared_buffers();
  if (model.tied_embeddings) graph.tied_table_bytes = megatron.table_bytes();
  return graph;
}

}  // namespace tessera
