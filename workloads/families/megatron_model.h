#pragma once

#include <string>

#include "workloads/families/families.h"
#include "workloads/families/vocabulary.h"
#include "workloads/ops/megatron.h"

namespace tessera {

/// Queries, keys and values of one rank, [s, b, heads, d].
struct Heads {
  Tensor q, k, v;
};

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

}  // namespace tessera
