// GPT and Llama of Megatron-Core r0.5.0: megatron/model/transformer.py, language_model.py and
// gpt_model.py; BLOOM as bigscience-workshop/Megatron-DeepSpeed changes them; with the kernels of
// Transformer Engine where the profile says so. Activations are [s, b, h], with sequence
// parallelism [s / tensor, b, h] between the split layers.
#include <algorithm>
#include <vector>

#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/loss/fused_cross_entropy.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/python_calls.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/parallel/cost_split.h"
#include "workloads/parallel/layer_split.h"

namespace tessera {

Bytes MegatronModel::shared_buffers() const {
  const bool products = !uses_fused_attention(profile_) && !profile_.transformer_engine &&
                        !bloom_ &&                 // reads ALiBi there
                        !profile_.planned_memory;  // OneFlow's product has no third operand
  const std::int64_t unread = element_bytes(activation_precision(step_.precision));
  return Bytes((products ? unread * b_ * heads_ * s_ * s_ : 0) + b_ * s_ * s_);
}

Tensor MegatronModel::norm(Tape& tape, const std::string& name, const Tensor& x) const {
  if (!llama_ || model_.norm == NormKind::layer_norm) return layer_norm(tape, name, x);
  if (model_.norm == NormKind::layer_norm_without_bias)
    return layer_norm(tape, name, x, NormTerms::weight);
  return root_mean_square_norm(tape, name, x, profile_);
}

/// Looked up sequence first, so that nothing is transposed behind.
void MegatronModel::embed_by_position(Tape& tape, const Tensor& table) const {
  const Tensor ids = tape.input("tokens", {s_, b_}, Precision::int64);
  const Tensor rows =
      vocab_parallel_embedding(tape, "embedding.tokens", table, ids, tensor_, parts_ == 1);
  tape.output(parts_ == 1 ? rows : reduce_scatter_sequence(tape, "embedding", rows, parts_));
}

void MegatronModel::embed(Tape& tape) const {
  const bool used_again = tied_ || (model_.mtp_layers > 0 && step_.layout.pipeline == 1);
  const Tensor table = input_embedding(tape, used_again, vocab_, model_.hidden);
  const bool has_positions = model_.max_positions > 0 && !llama_;
  const Tensor positions =
      has_positions ? tape.parameter("embedding.positions", {model_.max_positions, model_.hidden})
                    : Tensor();
  if (profile_.scatter_embedding) return embed_by_position(tape, table);
  const Tensor ids = tape.input("tokens", {b_, s_}, Precision::int64);
  const Tensor position_ids = tape.input("position_ids", {b_, s_}, Precision::int64);
  Tensor sum = vocab_parallel_embedding(tape, "embedding.tokens", table, ids, tensor_);
  if (model_.embedding_scale) sum = scale(tape, "embedding.scale", sum);
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

Tensor MegatronModel::residual(Tape& tape, const std::string& name, const Tensor& x,
                               const Tensor& before, LayerKind kind) const {
  const double p = active_dropout(step_, model_.hidden_dropout);
  const bool is_attention = name == "attention";
  const bool biased = is_attention ? has_output_bias() : has_mlp_bias(kind);
  const std::string linear = is_attention ? "attention.output" : "mlp.down";
  Tensor branch = x;
  if (norms_after()) {
    if (biased) branch = add(tape, name + ".bias", branch, bias(tape, linear, model_.hidden));
    branch = norm(tape, "ln_" + name + "_after", branch);
  }
  if (model_.residual_scale) branch = scale(tape, name + ".scale", branch);
  if (biased && !norms_after()) {
    return bias_dropout_add(tape, name + ".bias_dropout_add", branch,
                            bias(tape, linear, model_.hidden), before, p);
  }
  return add(tape, name + ".residual", before, dropout(tape, name + ".dropout", branch, p));
}

/// Both branches behind one norm, or each behind its own.
Tensor MegatronModel::parallel_layer(Tape& tape, const Tensor& x, LayerKind kind) const {
  const Tensor input = norm(tape, "ln_attention", x);
  const bool two = model_.block_order == BlockOrder::parallel_two_norms;
  const Tensor mlp_input = two ? norm(tape, "ln_mlp", x) : input;
  const Tensor attended = attention(tape, input, kind);
  const Tensor fed = feed_forward(tape, mlp_input, kind);
  const Tensor middle = residual(tape, "attention", attended, x, kind);
  const Tensor out = residual(tape, "mlp", fed, middle, kind);
  tape.drop_names({input, mlp_input, attended, fed, middle});
  return out;
}

Tensor MegatronModel::transformer_layer(Tape& tape, const Tensor& x, LayerKind kind) const {
  if (model_.block_order != BlockOrder::sequential) return parallel_layer(tape, x, kind);
  if (kind.letter != '\0') return lettered_layer(tape, x, kind);
  // Norms that are modules of their own; others are fused into the layer behind them.
  const auto before = [&](const char* name, const Tensor& input, bool alone) {
    if (!norms_before()) return input;
    if (!alone || !step_.recomputes("layernorm")) return norm(tape, name, input);
    return tape.remade([=, this](Tape& t) { return norm(t, name, input); });
  };
  const Tensor attention_input = before("ln_attention", x, latent());
  const Tensor attended = attention(tape, attention_input, kind);
  const Tensor middle = residual(tape, "attention", attended, x, kind);
  const Tensor mlp_input = before("ln_mlp", middle, kind.experts);
  if (norms_before()) tape.drop_names({attention_input});
  const Tensor fed = feed_forward(tape, mlp_input, kind);
  const Tensor out = residual(tape, "mlp", fed, middle, kind);
  tape.python_calls(kLayerModules);
  tape.drop_names({attended, middle, mlp_input, fed});
  return out;
}

void MegatronModel::layer(Tape& tape, LayerKind kind) const {
  const Tensor x = input(tape);
  if (step_.recompute_layers > 0 && !kind.again)
    return tape.output(transformer_layer(tape, x, kind));
  recomputable_layer(tape, step_, x, [=, this](Tape& t) { return transformer_layer(t, x, kind); });
}

Tensor MegatronModel::logits(Tape& tape, const std::string& name, const Tensor& x,
                             const Tensor& table) const {
  LinearLayer layer{.reduce_gradient_over = tensor_,
                    .overlap_sum = profile_.overlap_tensor_gradients,
                    .gather_input_over = parts_,
                    .own_rows_first = profile_.own_rows_first,
                    .keeps_gathered = profile_.keeps_gathered,
                    .full_precision = true};
  if (model_.head_bias) layer.bias = tape.parameter("lm_head.bias", {vocab_});
  Tensor out = linear_over_last(tape, name, x, table, layer);
  if (model_.logit_scale) out = scale(tape, name + ".scale", out);
  if (!model_.logit_softcap) return out;
  const Tensor squeezed = tessera::tanh(tape, name + ".tanh", scale(tape, name + ".divide", out));
  return scale(tape, name + ".multiply", squeezed);
}

void MegatronModel::add_loss(Tape& tape, const std::string& name, const Tensor& logits) const {
  const Tensor labels =
      tape.input(name == "loss" ? "labels" : name + ".labels", {s_, b_}, Precision::int64);
  tape.differentiate(mean_last(tape, name + ".mean", losses_of(tape, name, logits, labels)));
}

Tensor MegatronModel::losses_of(Tape& tape, const std::string& name, const Tensor& logits,
                                const Tensor& labels) const {
  switch (profile_.loss_fusion) {
    case LossFusion::native:
      return native_cross_entropy(tape, name, logits, labels, tensor_);
    case LossFusion::te:
      return engine_cross_entropy(tape, name, logits, labels, tensor_);
    case LossFusion::separate:
      break;
  }
  const Tensor exact = cast(tape, name + ".float", logits, Precision::fp32);
  return vocab_parallel_cross_entropy(tape, name, exact, labels, tensor_, profile_.loss_in_place);
}

/// Layers that predict the token behind the next, and those behind it, each from the results of the
/// one before (the first from the last layer's) and a further token, all with the same head.
/// Source: Megatron-Core transformer/multi_token_prediction.py.
void MegatronModel::predict_further(Tape& tape, const Tensor& x, const Tensor& table) const {
  const Sizes sizes{vocab_, model_.hidden};
  const Tensor words =
      step_.layout.pipeline == 1
          ? (tied_ ? table : tape.parameter_finished_elsewhere("embedding.tokens", sizes))
          : (model_.tied_embeddings ? table : tape.parameter("mtp.embedding", sizes));
  Tensor known = x;
  for (std::int64_t depth = 1; depth <= model_.mtp_layers; ++depth) {
    known = further_layer(tape, depth, known, words);
    add_further_loss(tape, known, table);
  }
  tape.enter_scope("");
}

/// Source: Megatron-Core multi_token_prediction.py, which concatenates along the sequence.
void MegatronModel::further_layers(Tape& tape) const {
  const Tensor words = tape.parameter("mtp.embedding", {vocab_, model_.hidden});
  std::vector<Tensor> results{input(tape)};
  for (std::int64_t depth = 1; depth <= model_.mtp_layers; ++depth)
    results.push_back(further_layer(tape, depth, results.back(), words));
  tape.enter_scope("");
  tape.output(concatenate(tape, "mtp.results", results, 0));
}

void MegatronModel::add_further_loss(Tape& tape, const Tensor& known, const Tensor& table) const {
  add_loss(tape, "mtp.loss", logits(tape, "mtp.lm_head", known, table));
}

/// Every rank holds all of the projection of both inputs, on its part of the sequence.
Tensor MegatronModel::further_layer(Tape& tape, std::int64_t depth, const Tensor& x,
                                    const Tensor& words) const {
  if (depth > 1) tape.enter_scope("mtp" + std::to_string(depth) + ".");
  const Tensor ids = tape.input("mtp.tokens", {b_, s_}, Precision::int64);
  const Tensor found = vocab_parallel_embedding(tape, "mtp.embedding", words, ids, tensor_);
  Tensor next = contiguous(tape, "mtp.embedding.transpose", transpose(tape, found, 0, 1));
  if (parts_ > 1) next = split_sequence(tape, "mtp.embedding", next, parts_);
  const Tensor both = concatenate_last(tape, "mtp.join", norm(tape, "mtp.ln_embedding", next),
                                       norm(tape, "mtp.ln_hidden", x));
  const Tensor weight = tape.parameter("mtp.projection.weight", {model_.hidden, 2 * model_.hidden});
  const Tensor input = linear_over_last(tape, "mtp.projection", both, weight, {});
  const LayerKind kind = kind_of_layer(model_, step_, model_.layers - 1);
  return norm(tape, "mtp.ln_f", transformer_layer(tape, input, kind));
}

Tensor MegatronModel::input(Tape& tape) const {
  return tape.block_input("hidden", {s_ / parts_, b_, model_.hidden});
}

void MegatronModel::head(Tape& tape) const {
  if (step_.split.mtp_ahead) return head_of_all(tape);
  const Tensor x = input(tape);
  const Tensor normalized = norm(tape, "ln_f", x);
  const Tensor table = output_embedding(tape, tied_, vocab_, model_.hidden);
  const Tensor scores = logits(tape, "lm_head", normalized, table);
  if (step_.mode == StepMode::inference) return tape.keep(scores);
  tape.set_phase(Phase::loss);
  add_loss(tape, "loss", scores);
  if (model_.mtp_layers > 0) predict_further(tape, x, table);
}

/// Behind further_layers in another stage: a loss over each of the results that arrive.
void MegatronModel::head_of_all(Tape& tape) const {
  const auto count = static_cast<int>(model_.mtp_layers) + 1;
  const Tensor all = tape.block_input("hidden", {count * s_ / parts_, b_, model_.hidden});
  const std::vector<Tensor> results = chunk_first(tape, "mtp.results", all, count);
  const Tensor normalized = norm(tape, "ln_f", results.front());
  const Tensor table = output_embedding(tape, tied_, vocab_, model_.hidden);
  const Tensor scores = logits(tape, "lm_head", normalized, table);
  tape.set_phase(Phase::loss);
  add_loss(tape, "loss", scores);
  for (std::size_t depth = 1; depth < results.size(); ++depth) {
    if (depth > 1) tape.enter_scope("mtp" + std::to_string(depth) + ".");
    add_further_loss(tape, results[depth], table);
  }
  tape.enter_scope("");
}

void MegatronModel::head_without_loss(Tape& tape) const {
  const Tensor normalized = norm(tape, "ln_f", input(tape));
  const Tensor table = output_embedding(tape, tied_, vocab_, model_.hidden);
  tape.output(logits(tape, "lm_head", normalized, table));
}

void MegatronModel::loss_alone(Tape& tape) const {
  const Tensor scores = tape.block_input("logits", {s_, b_, vocab_});
  if (step_.mode == StepMode::inference) return tape.keep(scores);
  tape.set_phase(Phase::loss);
  add_loss(tape, "loss", scores);
}

std::int64_t padded_vocabulary(std::int64_t vocab, int tensor, std::int64_t multiple) {
  const std::int64_t whole = multiple * tensor;
  return (vocab + whole - 1) / whole * whole;
}

namespace {

/// One block per kind of layer.
ModelGraph decoder_graph(const ModelSpec& model, const StepOptions& step,
                         const MegatronModel& megatron, std::vector<LayerKind>& kinds) {
  for (std::int64_t number = 0; number < model.layers; ++number) {
    const LayerKind kind = kind_of_layer(model, step, number);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  const auto layer_block = [&](LayerKind kind) {
    StepOptions own = step;
    if (kind.bf16) own.precision = Precision::bf16;
    Block block = record_block(name_of_block(model, kind), own,
                               [&](Tape& tape) { megatron.layer(tape, kind); });
    block.waits_on_host = kind.waits;
    return block;
  };
  ModelGraph graph = decoder_sequence(
      record_block("embedding", step, [&](Tape& tape) { megatron.embed(tape); }),
      layer_block(kinds.front()),
      record_block("head", step, [&](Tape& tape) { megatron.head(tape); }), model.layers);
  for (std::size_t kind = 1; kind < kinds.size(); ++kind)
    graph.blocks.push_back(layer_block(kinds[kind]));
  for (std::int64_t number = 0; number < model.layers; ++number) {
    const auto found = std::ranges::find(kinds, kind_of_layer(model, step, number)) - kinds.begin();
    if (found > 0)  // behind embedding, the first kind and the head
      graph.order[static_cast<std::size_t>(number) + 1] = static_cast<int>(found) + 2;
  }
  return graph;
}

/// Behind the last layer, ahead of the head, which is alone in its stage.
void put_further_layers_ahead(const ModelSpec& model, const StepOptions& step,
                              const MegatronModel& megatron, ModelGraph& graph) {
  graph.order.insert(graph.order.end() - 1, static_cast<int>(graph.blocks.size()));
  graph.layer_numbers.insert(graph.layer_numbers.end() - 1, kNoLayer);
  graph.blocks.push_back(
      record_block("mtp", step, [&](Tape& tape) { megatron.further_layers(tape); }));
  graph.blocks_of_parts = layers_of_parts(model.layers, step).value();
  ++graph.blocks_of_parts.front();
  ++graph.blocks_of_parts.back();
  ++*(graph.blocks_of_parts.end() - 2);
}

/// Where the last stage has room for the loss alone, that is a block of its own.
void split_graph_by_cost(const ModelSpec& model, const StepOptions& step,
                         const MegatronModel& megatron, ModelGraph& graph) {
  constexpr std::size_t kHead = 2;
  CostSplit split =
      split_by_cost(model, step.layout.pipeline, step.framework.fills_past_share).value();
  graph.blocks_of_parts = std::move(split.blocks);
  if (!split.loss_apart) return;
  graph.blocks[kHead] =
      record_block("head", step, [&](Tape& tape) { megatron.head_without_loss(tape); });
  graph.order.push_back(static_cast<int>(graph.blocks.size()));
  graph.layer_numbers.push_back(kNoLayer);
  graph.blocks.push_back(
      record_block("loss", step, [&](Tape& tape) { megatron.loss_alone(tape); }));
}

}  // namespace

ModelGraph megatron_blocks(const ModelSpec& model, const StepOptions& step) {
  const MegatronModel megatron(model, step);
  std::vector<LayerKind> kinds;
  ModelGraph graph = decoder_graph(model, step, megatron, kinds);
  if (uses_cost_split(step)) split_graph_by_cost(model, step, megatron, graph);
  if (step.split.mtp_ahead) put_further_layers_ahead(model, step, megatron, graph);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Block& block = graph.blocks[i == 0 ? 1 : i + 2];
    if (step.layout.tensor > 1 && step.lora_rank == 0)
      block.partial_parameters = megatron.head_norm_parameters();  // each has some heads
    if (step.layout.sequence_parts() > 1)
      block.partial_parameters += megatron.partial_parameters(kinds[i]);
  }
  if (step.layout.sequence_parts() > 1 && step.lora_rank == 0)
    graph.blocks[2].partial_parameters = megatron.norm_parameters();
  graph.shared_buffers = megatron.shared_buffers();
  if (model.tied_embeddings && step.lora_rank == 0) graph.tied_table_bytes = megatron.table_bytes();
  return graph;
}

}  // namespace tessera
