#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// Families whose operator graphs we know.
enum class ModelFamily : std::uint8_t {
  gpt2,
  opt,
  bert,
  llama,
  switch_transformer,
  vision,
  bloom,  ///< GPT with ALiBi in place of positions and a norm behind the embedding
  mpt,    ///< ALiBi as well, and no biases
};

/// Whether positions enter as a bias on attention scores that grows with the distance.
/// Source: Press et al., "Train Short, Test Long", ICLR 2022.
constexpr bool has_alibi(ModelFamily family) {
  return family == ModelFamily::bloom || family == ModelFamily::mpt;
}

/// Image models (family vision), each with its published dimensions: workloads/vision.
enum class VisionArchitecture : std::uint8_t {
  none,  ///< all other families
  resnet50,
  resnet101,
  vgg16,
  densenet121,
  googlenet,
  inception_v4,
  unet,
  vit_b_16,
  vit_l_16,
  cait_xxs24,
  cait_s24,
  resnext50_32x4d,
  resnext101_32x4d,
  se_resnext101_32x4d
};

enum class Activation : std::uint8_t { gelu, gelu_new, relu, silu, swiglu };

/// Dimensions of a transformer, read from a Hugging Face config.json or one of our model files: all
/// counts > 0 unless noted. Of an image model: name, family and the last three.
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
  std::int64_t max_positions =
      0;  ///< learned position embeddings; 0 = none (rotary, relative, ALiBi)
  std::int64_t token_types = 0;  ///< bert; else 0
  Activation activation = Activation::gelu_new;
  double hidden_dropout = 0.1;     ///< probability in [0, 1)
  double attention_dropout = 0.1;  ///< probability in [0, 1)
  bool tied_embeddings = true;
  bool qk_norm = false;      ///< gpt2, llama: queries and keys of every head are normalized
  bool qkv_bias = false;     ///< llama: queries, keys and values have biases, as all of gpt2 has
  std::int64_t experts = 0;  ///< switch transformers, gpt2 and llama; 0 = dense
  std::int64_t expert_capacity = 0;    ///< switch transformers: tokens per sequence and expert
  std::int64_t moe_every = 0;          ///< switch transformers: every n-th layer is sparse
  std::int64_t experts_per_token = 0;  ///< gpt2, llama: all layers are sparse
  VisionArchitecture architecture = VisionArchitecture::none;
  std::int64_t image_size = 0;  ///< height and width [pixels]; 0 = no image model
  std::int64_t classes = 0;     ///< logits per image (U-Net: per pixel); 0 = no image model
};

/// Image size and number of classes that an architecture was published with.
std::int64_t usual_image_size(VisionArchitecture architecture);
std::int64_t usual_classes(VisionArchitecture architecture);

/// Parameters of the whole model, by closed form over the dimensions; bert with its pre-training
/// heads. Of an image model: of its operator graph.
std::int64_t parameter_count(const ModelSpec& model);

}  // namespace tessera
