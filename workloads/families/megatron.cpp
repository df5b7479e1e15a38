// GPT and Llama of Megatron-Core r0.5.0: megatron/model/transformer.py, language_model.py and
// gpt_model.py; BLOOM as bigscience-workshop/Megatron-DeepSpeed changes them; with the kernels of
// Transformer Engine where the profile says so. Activations are [s, b, h], with sequence
// parallelism [s / tensor, b, h] between the split layers.
#include "workloads/ops/megatron.h"

#include <cmath>

#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/families/vocabulary.h"
#include "workloads/ops/context_attention.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/experts.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/transformer.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Queries, keys and values of one rank, [s, b, heads, d].
struct Heads {
  Tensor q, k, v;
};

/// What Megatron's fused causal softmax was written for: blocks of four warps take a row each, or
/// two rows of up to 128 keys. It leaves the rest to PyTorch, in fp32.
/// Source: megatron/model/fused_softmax.py, megatron/fused_kernels/scaled_masked_softmax.h.
bool fused_softmax_takes(std::int64_t matrices, std::int64_t keys) {
  constexpr std::int64_t kFewestKeys = 17, kMostKeys = 4096, kTwoRowsPerWarp = 128, kWarps = 4;
  const std::int64_t per_block = keys <= kTwoRowsPerWarp ? 2 * kWarps : kWarps;
  return keys >= kFewestKeys && keys <= kMostKeys && keys % 4 == 0 && matrices % per_block == 0;
}

/// What one tensor-parallel rank holds.
class MegatronModel {
 public:
  MegatronModel(const ModelSpec& model, const StepOptions& step)
      : model_(model),
        step_(step),
        profile_(step.framework),
        s_(step.sequence_length / step.layout.context),
        b_(step.micro_batch),
        tensor_(step.layout.tensor),
        parts_(step.layout.sequence_parts()),
        heads_(model.heads / tensor_),
        kv_heads_(model.kv_heads / tensor_),
        ffn_(model.ffn / tensor_),
        vocab_(padded_vocabulary(model.vocab, tensor_) / tensor_),
        tied_(model.tied_embeddings && step.layout.pipeline == 1),
        llama_(model.family == ModelFamily::llama),
        bloom_(model.family == ModelFamily::bloom) {}

  void embed(Tape& tape) const;
  void layer(Tape& tape) const;
  void head(Tape& tape) const;
  /// The mask that the data loader makes, and baddbmm's unread input in Megatron's global memory
  /// buffer.
  Bytes shared_buffers() const;
  /// Parameters of a norm, and those of a layer that work on parts of the sequence: norms, biases
  /// behind split rows, and the router of whole experts.
  std::int64_t norm_parameters() const { return (llama_ ? 1 : 2) * model_.hidden; }
  std::int64_t head_norm_parameters() const {
    return model_.qk_norm ? 2 * (llama_ ? 1 : 2) * model_.head_dim : 0;
  }
  std::int64_t partial_parameters() const {
    const std::int64_t routers = step_.layout.whole_experts() ? model_.experts : 0;
    return 2 * norm_parameters() + (has_bias() ? 2 * model_.hidden : 0) + routers * model_.hidden;
  }
  /// Gradient of this rank's part of the word embedding.
  Bytes table_bytes() const {
    return Bytes(element_bytes(step_.formats.gradients) * vocab_ * model_.hidden);
  }

 private:
  Tensor transformer_layer(Tape& tape, const Tensor& x) const;
  Tensor attention(Tape& tape, const Tensor& x) const;
  Heads project(Tape& tape, const Tensor& x) const;
  Heads normalized(Tape& tape, const Heads& heads) const;
  Heads rotated(Tape& tape, const Heads& heads) const;
  Tensor mixed_heads(Tape& tape, const Heads& heads) const;
  Tensor unfused_attention(Tape& tape, const Heads& heads) const;
  Tensor flash_attention(Tape& tape, const Heads& heads) const;
  Tensor ulysses_attention(Tape& tape, const Heads& heads) const;
  Tensor attention_weights(Tape& tape, const Tensor& scores) const;
  Tensor feed_forward(Tape& tape, const Tensor& x) const;
  Tensor experts(Tape& tape, const Tensor& x) const;
  std::int64_t expert_capacity(std::int64_t tokens) const;
  Tensor residual(Tape& tape, const std::string& name, const Tensor& x, const Tensor& before) const;
  Tensor norm(Tape& tape, const std::string& name, const Tensor& x) const;

  bool has_bias() const { return !llama_; }
  bool has_qkv_bias() const { return has_bias() || model_.qkv_bias; }
  Tensor bias(Tape& tape, const std::string& name, std::int64_t size) const {
    return tape.parameter(name + ".bias", {size});
  }
  Tensor column(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out) const {
    const Tensor weight = tape.parameter(name + ".weight", {out, x.shape.last()});
    return column_parallel_linear(tape, name, x, weight, split());
  }
  TensorSplit split() const {
    return {tensor_, parts_, profile_.overlap_tensor_gradients,
            profile_.overlap_tensor_products && parts_ > 1};
  }
  Tensor row(Tape& tape, const std::string& name, const Tensor& x) const {
    const Tensor weight = tape.parameter(name + ".weight", {model_.hidden, x.shape.last()});
    return row_parallel_linear(tape, name, x, weight, split());
  }

  const ModelSpec& model_;
  const StepOptions& step_;
  const FrameworkProfile& profile_;
  std::int64_t s_, b_;  ///< positions and sequences of this rank
  int tensor_;
  int parts_;                                    ///< of the sequence, between split layers
  std::int64_t heads_, kv_heads_, ffn_, vocab_;  ///< of this rank
  bool tied_;                                    ///< first and last stage are the same
  bool llama_;
  bool bloom_;  ///< ALiBi, and a norm behind the embedding
};

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

Heads MegatronModel::project(Tape& tape, const Tensor& x) const {
  const std::int64_t d = model_.head_dim;
  const std::int64_t width = (heads_ + 2 * kv_heads_) * d;
  Tensor qkv;
  if (has_qkv_bias() && profile_.bias_epilogue) {
    const Tensor weight = tape.parameter("attention.qkv.weight", {width, x.shape.last()});
    qkv = column_parallel_linear(tape, "attention.qkv", x, weight, split(),
                                 bias(tape, "attention.qkv", width));
  } else {
    qkv = column(tape, "attention.qkv", x, width);
    if (has_qkv_bias())
      qkv = add(tape, "attention.qkv_bias", qkv, bias(tape, "attention.qkv", width));
  }
  if (heads_ == kv_heads_) {  // q, k and v of a head lie side by side
    const auto parts =
        chunk_last(tape, "attention.qkv", view(tape, qkv, {s_, b_, heads_, 3 * d}), 3);
    return {parts[0], parts[1], parts[2]};
  }
  const auto parts =
      split_last(tape, "attention.qkv", qkv, {heads_ * d, kv_heads_ * d, kv_heads_ * d});
  return {view(tape, parts[0], {s_, b_, heads_, d}), view(tape, parts[1], {s_, b_, kv_heads_, d}),
          view(tape, parts[2], {s_, b_, kv_heads_, d})};
}

/// Kernels of norms want rows side by side. Source: Megatron core/transformer/attention.py.
Heads MegatronModel::normalized(Tape& tape, const Heads& heads) const {
  const auto by_head = [&](const std::string& name, const Tensor& x) {
    return norm(tape, name + "_norm", contiguous(tape, name + "_copy", x));
  };
  return {by_head("attention.q", heads.q), by_head("attention.k", heads.k), heads.v};
}

Heads MegatronModel::rotated(Tape& tape, const Heads& heads) const {
  const auto turn = [&](const std::string& name, const Tensor& x) {
    if (profile_.fused_rope) return fused_rope(tape, name, x, s_);
    const Sizes table{s_, 1, 1, model_.head_dim};
    return composed_rope(tape, name, x, tape.input("rotary.cos", table, x.precision),
                         tape.input("rotary.sin", table, x.precision));
  };
  return {turn("rotary.q", heads.q), turn("rotary.k", heads.k), heads.v};
}

Tensor MegatronModel::attention_weights(Tape& tape, const Tensor& scores) const {
  const bool wants_fused = profile_.attention == AttentionKernels::fused_softmax;
  if (wants_fused && fused_softmax_takes(b_ * heads_, s_)) {
    return causal_softmax(tape, "attention.softmax", scores);
  }
  const Tensor mask = tape.input("attention.mask", {1, 1, s_, s_}, Precision::int8);
  const Tensor exact =
      wants_fused ? cast(tape, "attention.softmax.to_fp32", scores, Precision::fp32) : scores;
  const Tensor weights =
      softmax(tape, "attention.softmax", masked_fill_(tape, "attention.mask", exact, mask));
  return wants_fused ? cast(tape, "attention.softmax.to_16_bit", weights, scores.precision)
                     : weights;
}

Tensor MegatronModel::unfused_attention(Tape& tape, const Heads& heads) const {
  const std::int64_t d = model_.head_dim;
  const auto batched = [&](const std::string& name, const Tensor& part) {
    const Tensor all = repeat_heads(tape, name, part, 2, heads_ / part.sizes()[2]);
    return transpose(tape, reshape(tape, all, {s_, b_ * heads_, d}), 0, 1);
  };
  const Tensor q = batched("attention.q", heads.q);
  const Tensor k = batched("attention.k_repeat", heads.k);
  const Tensor v = batched("attention.v_repeat", heads.v);
  std::optional<Tensor> alibi;
  if (bloom_)
    alibi =
        tape.buffer("attention.alibi", {b_ * heads_, 1, s_}, activation_precision(step_.precision));
  const Tensor scores = scaled_bmm(tape, "attention.scores", q, transpose(tape, k, 1, 2), alibi);
  const Tensor weights = attention_weights(tape, view(tape, scores, {b_, heads_, s_, s_}));
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step_, model_.attention_dropout));
  const Tensor context =
      bmm(tape, "attention.context", view(tape, dropped, {b_ * heads_, s_, s_}), v);
  const Tensor by_position = permute(tape, view(tape, context, {b_, heads_, s_, d}), {2, 0, 1, 3});
  const Tensor merged = contiguous(tape, "attention.merge_heads", by_position);
  tape.drop_names({scores, dropped});
  return merged;
}

Tensor MegatronModel::flash_attention(Tape& tape, const Heads& heads) const {
  const auto by_head = [&](const std::string& name, const Tensor& x) {  // [b, heads, s, d]
    if (!profile_.attention_copies) return permute(tape, x, {1, 2, 0, 3});
    const Tensor copy = contiguous(tape, name, permute(tape, x, {1, 0, 2, 3}));
    return permute(tape, copy, {0, 2, 1, 3});
  };
  const Tensor q = by_head("attention.q_copy", heads.q);
  const Tensor k = by_head("attention.k_copy", heads.k);
  const Tensor v = by_head("attention.v_copy", heads.v);
  const Tensor context = core_attention(tape, step_, {q, k, v}, {});
  return contiguous(tape, "attention.output_copy", permute(tape, context, {2, 0, 1, 3}));
}

/// The same over all-to-alls: whole sequences of some heads.
Tensor MegatronModel::ulysses_attention(Tape& tape, const Heads& heads) const {
  const int ranks = step_.layout.context;
  const Heads whole{sequence_to_heads(tape, "attention.q_exchange", heads.q, ranks),
                    sequence_to_heads(tape, "attention.k_exchange", heads.k, ranks),
                    sequence_to_heads(tape, "attention.v_exchange", heads.v, ranks)};
  return heads_to_sequence(tape, "attention.output_exchange", flash_attention(tape, whole), ranks);
}

/// softmax(q k^T) v, [s, b, heads, d].
Tensor MegatronModel::mixed_heads(Tape& tape, const Heads& heads) const {
  const bool trades_heads =
      step_.layout.context > 1 && step_.context_attention == ContextAttention::ulysses;
  if (trades_heads) return ulysses_attention(tape, heads);
  if (uses_fused_attention(profile_)) return flash_attention(tape, heads);
  if (!recomputes_attention_alone(step_)) return unfused_attention(tape, heads);
  return tape.checkpoint({heads.q, heads.k, heads.v},
                         [=, this](Tape& t) { return unfused_attention(t, heads); });
}

Tensor MegatronModel::attention(Tape& tape, const Tensor& x) const {
  Heads heads = project(tape, x);
  if (model_.qk_norm) heads = normalized(tape, heads);
  const Tensor merged = mixed_heads(tape, llama_ ? rotated(tape, heads) : heads);
  return row(tape, "attention.output", view(tape, merged, {s_, b_, heads_ * model_.head_dim}));
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

}  // namespace

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
