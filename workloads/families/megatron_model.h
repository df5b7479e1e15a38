#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/families/families.h"
#include "workloads/families/vocabulary.h"
#include "workloads/ops/attention/chosen_tokens.h"
#include "workloads/ops/experts/experts.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/megatron.h"

namespace tessera {

/// Queries, keys and values of one rank, [s, b, heads, d].
struct Heads {
  Tensor q, k, v;
  Tensor gate{};  ///< of what they give, [s, b, heads * d], where the model has one
};

/// Of an adapter: [rank, in], [out, rank], and what both give for the layer's input.
struct LowRankFactors {
  Tensor in, out, wide;
};

/// Outputs of a fused layer that are a layer of their own in transformers.
struct AdaptedPart {
  std::string module;    ///< its name there
  std::int64_t outputs;  ///< on this rank
};

/// In what the layers of a model differ.
struct LayerKind {
  bool experts = false;
  bool window = false;
  bool positions = true;  ///< turn its queries and keys
  char letter = '\0';     ///< of a pattern (layer_letter); else attention and a feed-forward
  bool bf16 = false;      ///< multiplies in bf16 where the step's products are in fp8 or nvfp4
  bool again = false;     ///< runs again in backward, as a whole
  bool waits = false;     ///< what it saved waits in host memory

  bool operator==(const LayerKind&) const = default;
};
/// Of layer `number` of the model, from 0.
LayerKind kind_of_layer(const ModelSpec& model, const StepOptions& step, std::int64_t number);
/// "dense_window_layer".
std::string name_of_block(const ModelSpec& model, const LayerKind& kind);

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
        vocab_(padded_vocabulary(model.vocab, tensor_, profile_.vocabulary_multiple) / tensor_),
        tied_(model.tied_embeddings && step.layout.pipeline == 1),
        llama_(model.family == ModelFamily::llama),
        bloom_(model.family == ModelFamily::bloom),
        gated_(is_gated(model.activation)) {}

  void embed(Tape& tape) const;
  void layer(Tape& tape, LayerKind kind) const;
  void head(Tape& tape) const;
  /// Norm and logits, and the loss over them: the head in two blocks, for stages of their own.
  void head_without_loss(Tape& tape) const;
  void loss_alone(Tape& tape) const;
  /// The layers of multi-token prediction in a stage of their own: what came in, and what each of
  /// them makes, one behind the other for the head.
  void further_layers(Tape& tape) const;
  /// The mask that the data loader makes, and baddbmm's unread input in Megatron's global memory
  /// buffer.
  Bytes shared_buffers() const;
  // Parameters, in megatron_parameters.cpp.
  std::int64_t norm_parameters() const;
  /// Of norms over heads, of which each rank has some.
  std::int64_t head_norm_parameters() const;
  /// What leads into the ranks that queries, keys and values come from.
  std::int64_t rank_parameters() const;
  /// Those of a layer that work on parts of the sequence: norms, biases behind split rows, the
  /// router of whole experts, what leads into ranks of latent attention.
  std::int64_t partial_parameters(LayerKind kind) const;
  /// Gradient of this rank's part of the word embedding.
  Bytes table_bytes() const {
    return Bytes(element_bytes(step_.formats.gradients) * vocab_ * model_.hidden);
  }

 private:
  void embed_by_position(Tape& tape, const Tensor& table) const;
  Tensor transformer_layer(Tape& tape, const Tensor& x, LayerKind kind) const;
  // megatron_hybrid.cpp
  Tensor lettered_layer(Tape& tape, const Tensor& x, LayerKind kind) const;
  Tensor lettered_branch(Tape& tape, const Tensor& input, LayerKind kind) const;
  Tensor mamba(Tape& tape, const Tensor& x, bool normed) const;
  Tensor delta_net(Tape& tape, const Tensor& x) const;
  Tensor short_convolution(Tape& tape, const Tensor& x) const;
  // megatron_states.cpp
  Tensor kimi_delta(Tape& tape, const Tensor& x) const;
  Tensor scan_mixer(Tape& tape, const Tensor& x) const;
  Tensor parallel_layer(Tape& tape, const Tensor& x, LayerKind kind) const;
  Tensor attention(Tape& tape, const Tensor& x, LayerKind kind) const;
  Heads project(Tape& tape, const Tensor& x, std::int64_t kv_heads) const;
  Heads project_by_rank(Tape& tape, const Tensor& x, std::int64_t kv_heads) const;
  Heads split_heads(Tape& tape, const Tensor& qkv, std::int64_t kv_heads) const;
  Heads normalized(Tape& tape, const Heads& heads) const;
  Heads rotated(Tape& tape, const Heads& heads) const;
  Tensor turned(Tape& tape, const std::string& name, const Tensor& x) const;
  // packed_attention.cpp
  Heads unpacked(Tape& tape, const Tensor& qkv) const;
  Tensor packed_attention(Tape& tape, const Tensor& x) const;
  // megatron_latent.cpp
  Heads latent_heads(Tape& tape, const Tensor& x, bool positions) const;
  Tensor query_source(Tape& tape, const Tensor& x) const;
  Tensor latent_queries(Tape& tape, const Tensor& source, bool positions) const;
  Heads latent_keys(Tape& tape, const Tensor& latent, const Tensor& key, bool positions) const;
  Tensor whole_sequence_of(Tape& tape, const std::string& name, const Tensor& part) const;
  Tensor shared_key(Tape& tape, const Tensor& x) const;
  // megatron_chosen.cpp
  Tensor turned_part(Tape& tape, const std::string& name, const Tensor& x) const;
  IndexOperands index_operands(Tape& tape, const Tensor& x, const Tensor& source) const;
  Tensor absorbed_queries(Tape& tape, const Tensor& source) const;
  Tensor chosen_attention(Tape& tape, const Tensor& x) const;
  Tensor mixed_heads(Tape& tape, const Heads& heads, bool window) const;
  Tensor unfused_attention(Tape& tape, const Heads& heads) const;
  Tensor flash_attention(Tape& tape, const Heads& heads, bool window) const;
  Tensor ulysses_attention(Tape& tape, const Heads& heads, bool window) const;
  Tensor attention_weights(Tape& tape, const Tensor& scores, bool masked) const;
  // megatron_feed_forward.cpp
  Tensor feed_forward(Tape& tape, const Tensor& x, LayerKind kind) const;
  Tensor gated_mlp(Tape& tape, const std::string& name, const Tensor& x, std::int64_t ffn) const;
  Tensor experts(Tape& tape, const Tensor& x) const;
  Tensor all_experts(Tape& tape, const Tensor& part) const;
  Tensor routed_experts(Tape& tape, const Tensor& x) const;
  bool sends_tokens() const;
  bool routes_own_tokens() const;
  bool waits_for_counts() const;
  Tensor tokens_sent_once(Tape& tape, const Tensor& tokens, const ChosenExperts& choice,
                          const ExpertGroup& group, std::int64_t capacity) const;
  bool casts_each_expert() const;
  bool pads_experts(std::int64_t capacity) const;
  Tensor experts_of_arrived(Tape& tape, const Tensor& rows, const Tensor& weights,
                            const ExpertGroup& group, std::int64_t capacity) const;
  bool gates_experts() const;
  bool weighs_in_kernel() const;
  Tensor activated_experts(Tape& tape, const Tensor& wide) const;
  Tensor multiplied_experts(Tape& tape, const Tensor& rows, const Tensor& weights,
                            const ExpertGroup& group) const;
  Tensor dense_feed_forward(Tape& tape, const Tensor& x) const;
  Tensor plain_or_gated_mlp(Tape& tape, const std::string& name, const Tensor& x,
                            std::int64_t ffn) const;
  Tensor shared_experts(Tape& tape, const Tensor& x) const;
  std::int64_t expert_capacity(std::int64_t tokens) const;
  Tensor residual(Tape& tape, const std::string& name, const Tensor& x, const Tensor& before,
                  LayerKind kind) const;
  Tensor input(Tape& tape) const;
  Tensor logits(Tape& tape, const std::string& name, const Tensor& x, const Tensor& table) const;
  void add_loss(Tape& tape, const std::string& name, const Tensor& logits) const;
  /// Per token.
  Tensor losses_of(Tape& tape, const std::string& name, const Tensor& logits,
                   const Tensor& labels) const;
  void predict_further(Tape& tape, const Tensor& x, const Tensor& table) const;
  Tensor further_layer(Tape& tape, std::int64_t depth, const Tensor& x, const Tensor& words) const;
  void head_of_all(Tape& tape) const;
  void add_further_loss(Tape& tape, const Tensor& known, const Tensor& table) const;
  Tensor norm(Tape& tape, const std::string& name, const Tensor& x) const;

  bool has_bias() const { return !llama_; }
  bool has_output_bias() const { return has_bias() || model_.output_bias; }
  /// Experts of GPT give no biases.
  bool has_mlp_bias(LayerKind kind) const {
    return (has_bias() || model_.mlp_bias) && !kind.experts;
  }
  bool norms_after() const { return model_.norm_placement != NormPlacement::before; }
  bool norms_before() const { return model_.norm_placement != NormPlacement::after; }
  bool latent() const { return model_.kv_rank > 0; }
  bool has_qkv_bias() const { return has_bias() || model_.qkv_bias; }
  Tensor bias(Tape& tape, const std::string& name, std::int64_t size) const {
    return tape.parameter(name + ".bias", {size});
  }
  Tensor column(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                Bias added = Bias::none) const {
    const Tensor weight = tape.parameter(name + ".weight", {out, x.shape.last()});
    std::optional<Tensor> numbers;
    if (added == Bias::epilogue) numbers = bias(tape, name, out);
    const Tensor result = column_parallel_linear(tape, name, x, weight, split(), numbers);
    return adapts(name) ? with_column_adapter(tape, name, x, weight, result) : result;
  }
  TensorSplit split() const {
    return {tensor_,
            parts_,
            profile_.overlap_tensor_gradients,
            profile_.overlap_tensor_products && parts_ > 1,
            profile_.own_rows_first,
            profile_.keeps_gathered};
  }
  Tensor row(Tape& tape, const std::string& name, const Tensor& x) const {
    const Tensor weight = tape.parameter(name + ".weight", {model_.hidden, x.shape.last()});
    const Tensor result = row_parallel_linear(tape, name, x, weight, split());
    return adapts(name) ? with_row_adapter(tape, name, x, weight, result) : result;
  }
  // megatron_adapters.cpp
  bool adapts(const std::string& name) const;
  Tensor with_column_adapter(Tape& tape, const std::string& name, const Tensor& x,
                             const Tensor& weight, const Tensor& result) const;
  Tensor with_row_adapter(Tape& tape, const std::string& name, const Tensor& x,
                          const Tensor& weight, const Tensor& result) const;
  Tensor adapted(Tape& tape, const std::string& lora, const LowRankFactors& factors,
                 const Tensor& weight, const Tensor& result) const;
  std::vector<AdaptedPart> adapted_parts(const std::string& name, std::int64_t outputs) const;
  Tensor with_adapters_of_parts(Tape& tape, const std::string& name, const Tensor& x,
                                const Tensor& result) const;
  std::int64_t partial_adapters(LayerKind kind) const;

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
  bool gated_;
};

}  // namespace tessera
