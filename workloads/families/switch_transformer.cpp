// Switch Transformers and, without experts, T5: Hugging Face transformers 4.35,
// models/{switch_transformers,t5}. Encoder and
// decoder both get `sequence_length` tokens. Every expert runs on a padded buffer of its full
// capacity, as in the measured variant of NeuSight; the routing loop is Python and waits for the
// GPU once per expert.
#include "workloads/families/families.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/experts/routing.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Rows of the relative position table (`relative_attention_num_buckets`).
constexpr std::int64_t kBuckets = 32;
/// Pointwise kernels of `_relative_position_bucket` over [s, s] int64 (comparisons, logarithm,
/// casts).
constexpr int kBucketKernels = 18;

enum class Stack { encoder, decoder };
enum class FeedForward { dense, sparse };

class SwitchTransformer {
 public:
  SwitchTransformer(const ModelSpec& model, const StepOptions& step)
      : model_(model),
        step_(step),
        b_(step.micro_batch),
        s_(step.sequence_length),
        p_(active_dropout(step, model.hidden_dropout)) {}

  void encoder_embedding(Tape& tape) const;
  void decoder_embedding(Tape& tape) const;
  void layer(Tape& tape, Stack stack, FeedForward kind) const;
  void encoder_output(Tape& tape) const;
  void head(Tape& tape) const;

 private:
  Sizes hidden() const { return {b_, s_, model_.hidden}; }
  Sizes scores() const { return {b_, model_.heads, s_, s_}; }
  /// Heads innermost: see `position_bias`.
  StridedShape bias_shape() const {
    const std::int64_t h = model_.heads;
    return {scores(), {h * s_ * s_, 1, s_ * h, h}};
  }
  Tensor look_up(Tape& tape, const Tensor& table) const {
    return embedding(tape, "embedding.tokens", table,
                     tape.input("tokens", {b_, s_}, Precision::int64));
  }
  void position_bias(Tape& tape, Stack stack) const;
  void cross_attention_bias(Tape& tape) const;
  Tensor projection(Tape& tape, const std::string& name, const Tensor& x) const;
  Tensor attention(Tape& tape, const std::string& name, const Tensor& x, const Tensor& memory,
                   const Tensor& bias) const;
  Tensor expert(Tape& tape, const Tensor& x, const std::string& name) const;
  Tensor sparse_feed_forward(Tape& tape, const Tensor& x) const;

  const ModelSpec& model_;
  const StepOptions& step_;
  std::int64_t b_, s_;
  double p_;
};

std::string bias_name(Stack stack) {
  return stack == Stack::encoder ? "encoder.position_bias" : "decoder.position_bias";
}

/// Made in a stack's first layer, added to the scores of all of them. [b, heads, s, s] with the
/// heads innermost in memory: `compute_bias` permutes the looked-up [s, s, heads] and adding the
/// mask keeps that order, so that every layer's `scores += position_bias` reads 4 of the 32 bytes
/// of each memory sector that it touches (strides as PyTorch 1.13 gives them when it runs this).
/// Its gradient is summed in a buffer by every layer, one addition per stack more than autograd
/// makes.
void SwitchTransformer::position_bias(Tape& tape, Stack stack) const {
  const Tensor buckets =
      tape.make("position_bias.buckets", StridedShape({s_, s_}), Precision::int64);
  tape.launch("position_bias.bucket", pointwise_kernel(buckets, 1), {}, {buckets});
  for (int i = 1; i < kBucketKernels; ++i) map_in_place(tape, "position_bias.bucket", buckets, {});
  const Tensor table = tape.parameter(bias_name(stack), {kBuckets, model_.heads});
  const Tensor values = embedding(tape, "position_bias.values", table, buckets);
  const Tensor by_head = view(tape, permute(tape, values, {2, 0, 1}), {1, model_.heads, s_, s_});
  const Sizes mask_sizes{b_, 1, stack == Stack::encoder ? 1 : s_, s_};
  const Tensor mask = tape.input("attention.mask", mask_sizes, tape.precision());
  tape.shared_output(add(tape, "position_bias.mask_add", by_head, mask));
}

/// Cross-attention has no relative positions: zeros plus the encoder's padding mask, made in the
/// decoder's first layer. [b, heads, s, s], row-major.
void SwitchTransformer::cross_attention_bias(Tape& tape) const {
  const Tensor zeros = tape.make("cross_attention.zeros", StridedShape({1, model_.heads, s_, s_}));
  tape.launch("cross_attention.zeros", pointwise_kernel(zeros, 0, KernelKind::fill), {}, {zeros});
  const Tensor mask = tape.input("encoder.mask", {b_, 1, 1, s_}, tape.precision());
  tape.shared_output(map(tape, "cross_attention.mask_add", {zeros, mask}));
}

void SwitchTransformer::encoder_embedding(Tape& tape) const {
  const Tensor table =
      tape.parameter_with_pending_gradient("embedding.tokens", {model_.vocab, model_.hidden});
  const Tensor words = look_up(tape, table);
  position_bias(tape, Stack::encoder);
  tape.output(dropout(tape, "embedding.dropout", words, p_));
}

void SwitchTransformer::decoder_embedding(Tape& tape) const {
  const Sizes sizes{model_.vocab, model_.hidden};
  const Tensor table = model_.tied_embeddings
                           ? tape.parameter_joined_elsewhere("embedding.tokens", sizes)
                           : tape.parameter_finished_elsewhere("embedding.tokens", sizes);
  const Tensor words = look_up(tape, table);
  position_bias(tape, Stack::decoder);
  cross_attention_bias(tape);
  tape.output(dropout(tape, "embedding.dropout", words, p_));
}

Tensor SwitchTransformer::projection(Tape& tape, const std::string& name, const Tensor& x) const {
  const Tensor flat = linear(tape, name, x, model_.heads * model_.head_dim, Bias::none);
  return transpose(tape, view(tape, flat, {b_, s_, model_.heads, model_.head_dim}), 1, 2);
}

Tensor SwitchTransformer::attention(Tape& tape, const std::string& name, const Tensor& x,
                                    const Tensor& memory, const Tensor& bias) const {
  const Tensor q = projection(tape, name + ".q", x);
  const Tensor k = projection(tape, name + ".k", memory);
  const Tensor v = projection(tape, name + ".v", memory);
  const Tensor scores = matmul(tape, name + ".scores", q, transpose(tape, k, 3, 2));
  const Tensor biased = add_(tape, name + ".position_bias", scores, bias);
  const Tensor weights = softmax(tape, name + ".softmax", biased);
  const Tensor dropped =
      dropout(tape, name + ".dropout", weights, active_dropout(step_, model_.attention_dropout));
  const Tensor context = matmul(tape, name + ".context", dropped, v);
  const Tensor merged = contiguous(tape, name + ".merge_heads", transpose(tape, context, 1, 2));
  return linear(tape, name + ".output",
                view(tape, merged, {b_, s_, model_.heads * model_.head_dim}), model_.hidden,
                Bias::none);
}

/// A gate, where there is one, is a layer of its own (transformers' T5DenseGatedActDense).
Tensor SwitchTransformer::expert(Tape& tape, const Tensor& x, const std::string& name) const {
  const bool gated = model_.activation == Activation::geglu;
  const Activation kind = gated ? Activation::gelu_new : model_.activation;
  const Tensor wide = linear(tape, name + (gated ? ".gate" : ".up"), x, model_.ffn, Bias::none);
  Tensor active = activate(tape, name + ".activation", kind, wide);
  if (gated)
    active = multiply(tape, name + ".gated", active,
                      linear(tape, name + ".up", x, model_.ffn, Bias::none));
  return linear(tape, name + ".down", dropout(tape, name + ".dropout", active, p_), model_.hidden,
                Bias::none);
}

Tensor SwitchTransformer::sparse_feed_forward(Tape& tape, const Tensor& x) const {
  const Tensor probability = route(tape, "router", x, model_.experts);
  Tensor combined = clone(tape, "experts.clone", x);
  for (std::int64_t e = 0; e < model_.experts; ++e) {
    const std::string name = std::string("expert").append(std::to_string(e));
    const Tensor mask = routed_tokens(tape, name, b_ * s_);
    const Tensor tokens = select_tokens(tape, name, x, mask, b_ * model_.expert_capacity);
    combined = scatter_tokens(tape, name, combined, mask, expert(tape, tokens, name));
  }
  return multiply(tape, "router.weight", probability, combined);
}

void SwitchTransformer::layer(Tape& tape, Stack stack, FeedForward kind) const {
  const Tensor bias = tape.shared_input(bias_name(stack), bias_shape());
  Tensor x = tape.block_input("hidden", hidden());
  const Tensor normalized = rms_norm(tape, "attention.norm", x);
  const Tensor attended = attention(tape, "attention", normalized, normalized, bias);
  x = add(tape, "attention.residual", x, dropout(tape, "attention.out_dropout", attended, p_));
  if (stack == Stack::decoder) {
    const Tensor memory = tape.shared_input("encoder.output", StridedShape(hidden()));
    const Tensor mask = tape.input("cross_attention.mask", scores(), tape.precision());
    const Tensor crossed =
        attention(tape, "cross_attention", rms_norm(tape, "cross.norm", x), memory, mask);
    x = add(tape, "cross.residual", x, dropout(tape, "cross.out_dropout", crossed, p_));
  }
  const Tensor inner = rms_norm(tape, "mlp.norm", x);
  const Tensor changed =
      kind == FeedForward::sparse ? sparse_feed_forward(tape, inner) : expert(tape, inner, "mlp");
  tape.output(add(tape, "mlp.residual", x, dropout(tape, "mlp.out_dropout", changed, p_)));
}

void SwitchTransformer::encoder_output(Tape& tape) const {
  const Tensor x = tape.block_input("hidden", hidden());
  const Tensor normalized = rms_norm(tape, "final_norm", x);
  tape.shared_output(dropout(tape, "final_norm.dropout", normalized, p_));
}

void SwitchTransformer::head(Tape& tape) const {
  const Tensor x = tape.block_input("hidden", hidden());
  const Tensor normalized =
      dropout(tape, "final_norm.dropout", rms_norm(tape, "final_norm", x), p_);
  const bool tied = model_.tied_embeddings;
  const Tensor table = output_embedding(tape, tied, model_.vocab, model_.hidden);
  const Tensor scaled = tied ? scale(tape, "lm_head.scale", normalized) : normalized;
  finish_with_logits(tape, step_, linear_with(tape, "lm_head", scaled, table));
}

/// Every `every`-th layer is sparse, beginning with the second of each run.
bool is_sparse(const ModelSpec& model, std::int64_t layer) {
  return model.experts > 0 && model.moe_every > 0 &&
         (model.moe_every == 1 || layer % model.moe_every == 1);
}

void append(ModelGraph& graph, int block, int layer_number) {
  graph.order.push_back(block);
  graph.layer_numbers.push_back(layer_number);
}

}  // namespace

ModelGraph switch_transformer_blocks(const ModelSpec& model, const StepOptions& step) {
  const SwitchTransformer network(model, step);
  ModelGraph graph;
  int layer_number = 0;
  const auto add_block = [&](const std::string& name, auto forward) {
    graph.blocks.push_back(record_block(name, step, forward));
    return static_cast<int>(graph.blocks.size()) - 1;
  };
  const auto add_single = [&](const std::string& name, auto forward) {
    append(graph, add_block(name, forward), kNoLayer);
  };
  const auto add_stack = [&](const std::string& name, Stack stack, std::int64_t layers) {
    const auto record = [&](const char* kind, FeedForward feed_forward) {
      return add_block(name + kind, [&](Tape& tape) { network.layer(tape, stack, feed_forward); });
    };
    const int dense = record(".dense_layer", FeedForward::dense);
    const int sparse = model.experts > 0 ? record(".sparse_layer", FeedForward::sparse) : dense;
    for (std::int64_t i = 0; i < layers; ++i) {
      append(graph, is_sparse(model, i) ? sparse : dense, layer_number++);
    }
  };
  add_single("encoder.embedding", [&](Tape& tape) { network.encoder_embedding(tape); });
  add_stack("encoder", Stack::encoder, model.encoder_layers);
  add_single("encoder.output", [&](Tape& tape) { network.encoder_output(tape); });
  add_single("decoder.embedding", [&](Tape& tape) { network.decoder_embedding(tape); });
  add_stack("decoder", Stack::decoder, model.layers);
  add_single("head", [&](Tape& tape) { network.head(tape); });
  return graph;
}

}  // namespace tessera
