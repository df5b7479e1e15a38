#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// Families whose operator graphs we know.
enum class ModelFamily : std::uint8_t { gpt2, opt, bert, llama, switch_transformer };

enum class Activation : std::uint8_t { gelu, gelu_new, relu, silu, swiglu };

/// Dimensions of a transformer, read from a Hugging Face config.json or one of our model files. All
/// counts > 0 unless noted.
struct ModelSpec {
  std::string name;
  ModelFamily family = ModelFamily::gpt2;
  std::int64_t layers = 0;          ///< decoder layers (bert: encoder layers)
  std::int64_t encoder_layers = 0;  ///< encoder-decoder models only; else 0
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< = heads without grouped-query attention
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;  ///< intermediate size of one branch
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;  ///< learned position embeddings; 0 = none (rotary, relative)
  std::int64_t token_types = 0;    ///< bert; else 0
  Activation activation = Activation::gelu_new;
  double hidden_dropout = 0.1;     ///< probability in [0, 1)
  double attention_dropout = 0.1;  ///< probability in [0, 1)
  bool tied_embeddings = true;
  std::int64_t experts = 0;            ///< switch transformers, gpt2 and llama; 0 = dense
  std::int64_t expert_capacity = 0;    ///< switch transformers: tokens per sequence and expert
  std::int64_t moe_every = 0;          ///< switch transformers: every n-th layer is sparse
  std::int64_t experts_per_token = 0;  ///< gpt2, llama: all layers are sparse
};

/// Parameters of the whole model, by closed form over the dimensions; bert with its pre-training
/// heads.
std::int64_t parameter_count(const ModelSpec& model);

}  // namespace tessera
