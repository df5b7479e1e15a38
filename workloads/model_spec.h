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
  se_resnext101_32x4d,
  latent_unet,
  dit_s_2,
  dit_b_2,
  dit_l_2,
  dit_xl_2
};

enum class Activation : std::uint8_t {
  gelu,
  gelu_new,
  relu,
  silu,
  swiglu,
  geglu,
  relu_squared,
  xielu,  ///< with two numbers that are trained
};

/// Norms of family llama.
enum class NormKind : std::uint8_t {
  rms_norm,
  layer_norm,
  layer_norm_without_bias,
};

/// Where a branch has its norms.
enum class NormPlacement : std::uint8_t {
  before,
  after,  ///< on what the branch gives, ahead of the residual addition (OLMo 2)
  both,   ///< Gemma 2 and 3
};

/// How attention and feed-forward follow each other.
enum class BlockOrder : std::uint8_t {
  sequential,
  parallel,            ///< side by side behind one norm (GPT-J, Falcon 7B, Cohere)
  parallel_two_norms,  ///< each behind a norm of its own (GPT-NeoX, Falcon 40B)
};

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
  // Of family llama alone, down to `delta_value_dim`; 0 and false: without.
  std::int64_t window = 0;  ///< tokens, itself included, that a token of a window layer sees
  std::int64_t window_kv_heads = 0;  ///< key-value heads of window layers; 0: kv_heads
  std::int64_t full_every = 0;       ///< every n-th layer has no window; 0: all have one
  std::int64_t full_first = 0;       ///< so many layers ahead have no window
  std::string attention_pattern;     ///< a letter per layer (attention_letter), repeated; or empty
  bool window_chunks = false;        ///< windows begin anew every `window` tokens (Llama 4)
  bool attention_sinks = false;      ///< a learned number per head joins its softmax
  bool window_sinks = false;         ///< the same in layers with a window alone
  bool attention_softcap = false;    ///< scores go through c tanh(x / c)
  bool logit_softcap = false;        ///< logits as well
  std::int64_t kv_rank = 0;        ///< latent attention: keys and values come from so many numbers
  std::int64_t q_rank = 0;         ///< queries come from so many; 0: from the hidden state
  std::int64_t rope_dim = 0;       ///< of a head's numbers, those that positions turn; 0: all
  std::int64_t v_head_dim = 0;     ///< of values, where it differs; 0: head_dim
  std::int64_t expert_ffn = 0;     ///< intermediate size of an expert; 0: ffn
  std::int64_t shared_ffn = 0;     ///< of the experts that all tokens share, together
  bool shared_gate = false;        ///< a sigmoid per token weighs the shared experts
  std::int64_t dense_layers = 0;   ///< so many layers ahead have no experts
  std::string expert_pattern;      ///< E (experts) or - (dense) per layer, repeated; or empty
  std::int64_t router_groups = 0;  ///< a token chooses among groups of experts first
  bool router_sigmoid = false;     ///< scores by sigmoid, not by softmax
  bool router_bias = false;  ///< a number per expert, not trained by gradients, joins the choice
  bool expert_bias = false;  ///< router and experts have biases
  NormKind norm = NormKind::rms_norm;
  NormPlacement norm_placement = NormPlacement::before;
  BlockOrder block_order = BlockOrder::sequential;
  bool qk_norm_wide = false;     ///< qk_norm goes over all heads together (OLMo 2)
  bool qk_norm_plain = false;    ///< qk_norm has no weights (Llama 4)
  bool attention_gate = false;   ///< a sigmoid per number weighs what heads give (Qwen3-Next)
  bool output_bias = false;      ///< attention's output has a bias
  bool mlp_bias = false;         ///< both layers of the feed-forward have biases
  bool head_bias = false;        ///< the vocabulary projection has a bias
  bool embedding_scale = false;  ///< embeddings times a constant
  bool residual_scale = false;   ///< branches times a constant
  bool logit_scale = false;      ///< logits times a constant
  std::int64_t mtp_layers = 0;   ///< that predict the tokens behind the next
  std::string layer_pattern;     ///< a letter per layer (LayerLetter); empty: all alike
  std::int64_t mamba_heads = 0;  ///< of a Mamba-2 layer, down to `mamba_groups`
  std::int64_t mamba_head_dim = 0;
  std::int64_t mamba_state = 0;   ///< numbers per channel
  std::int64_t mamba_groups = 0;  ///< of heads that share what writes to the state
  std::int64_t delta_heads = 0;   ///< of values, of a gated delta net, down to `delta_value_dim`
  std::int64_t delta_key_heads = 0;
  std::int64_t delta_key_dim = 0;
  std::int64_t delta_value_dim = 0;
  std::int64_t outputs = 0;  ///< bert: per token, of a head in place of the pre-training ones
  VisionArchitecture architecture = VisionArchitecture::none;
  std::int64_t image_size = 0;  ///< height and width [pixels]; 0 = no image model
  std::int64_t classes = 0;     ///< logits per image (U-Net: per pixel); 0 = no image model
};

/// Whether the MLP has two branches, one of which gates the other; in family llama.
constexpr bool is_gated(Activation activation) {
  return activation == Activation::silu || activation == Activation::swiglu ||
         activation == Activation::geglu;
}
/// What 0 stands for.
constexpr std::int64_t expert_ffn_of(const ModelSpec& m) {
  return m.expert_ffn > 0 ? m.expert_ffn : m.ffn;
}
constexpr std::int64_t value_dim_of(const ModelSpec& m) {
  return m.v_head_dim > 0 ? m.v_head_dim : m.head_dim;
}
constexpr std::int64_t rope_dim_of(const ModelSpec& m) {
  return m.rope_dim > 0 ? m.rope_dim : m.head_dim;
}
/// Key-value heads of a layer with (`window`) or without a window.
constexpr std::int64_t kv_heads_of(const ModelSpec& m, bool window) {
  return window && m.window_kv_heads > 0 ? m.window_kv_heads : m.kv_heads;
}
/// Whether a learned number per head joins the softmax of such a layer.
constexpr bool has_sinks(const ModelSpec& m, bool window) {
  return m.attention_sinks || (m.window_sinks && window);
}
/// The letter of layer `number`, from 0, of a pattern that is repeated to the last layer.
constexpr char repeated_letter(const std::string& pattern, std::int64_t number) {
  return pattern[static_cast<std::size_t>(number) % pattern.size()];
}
/// Letters of `attention_pattern`: what a layer attends to, and whether positions turn its heads.
namespace attention_letter {
inline constexpr char kWindow = 'w', kFull = 'f', kWithoutPositions = 'n';
}
/// Whether layer `number`, from 0, attends within the window.
constexpr bool has_window(const ModelSpec& m, std::int64_t number) {
  if (m.window == 0 || number < m.full_first) return false;
  if (!m.attention_pattern.empty())
    return repeated_letter(m.attention_pattern, number) == attention_letter::kWindow;
  return m.full_every == 0 || (number + 1) % m.full_every != 0;
}
/// Whether positions turn queries and keys of layer `number`, from 0.
constexpr bool has_positions(const ModelSpec& m, std::int64_t number) {
  return m.attention_pattern.empty() ||
         repeated_letter(m.attention_pattern, number) != attention_letter::kWithoutPositions;
}
/// Letters of `layer_pattern`, as Megatron-Core writes them (ssm/mamba_hybrid_layer_allocation.py).
namespace layer_letter {
inline constexpr char kMamba = 'M', kDelta = 'G', kAttention = '*', kFeedForward = '-',
                      kExperts = 'E';
}
/// The letter of layer `number`, from 0; attention and a feed-forward: 0.
constexpr char letter_of(const ModelSpec& m, std::int64_t number) {
  return m.layer_pattern.empty() ? '\0' : m.layer_pattern[static_cast<std::size_t>(number)];
}
/// Whether layer `number`, from 0, has experts (not of Switch Transformers).
constexpr bool has_experts(const ModelSpec& m, std::int64_t number) {
  if (!m.layer_pattern.empty()) return letter_of(m, number) == layer_letter::kExperts;
  if (m.experts == 0 || number < m.dense_layers) return false;
  return m.expert_pattern.empty() ||
         repeated_letter(m.expert_pattern, number) == layer_letter::kExperts;
}
/// Layers with experts (not of Switch Transformers).
constexpr std::int64_t expert_layers_of(const ModelSpec& m) {
  std::int64_t count = 0;
  for (std::int64_t number = 0; number < m.layers; ++number) count += has_experts(m, number);
  return count;
}
/// Whether a layer of family llama may differ from another.
constexpr bool layers_differ(const ModelSpec& m) {
  return m.window > 0 || m.dense_layers > 0 || m.mtp_layers > 0 || !m.attention_pattern.empty() ||
         !m.expert_pattern.empty() || !m.layer_pattern.empty();
}

/// Image size and number of classes that an architecture was published with.
std::int64_t usual_image_size(VisionArchitecture architecture);
std::int64_t usual_classes(VisionArchitecture architecture);

/// Parameters of the whole model, by closed form over the dimensions; bert with its pre-training
/// heads. Of an image model: of its operator graph.
std::int64_t parameter_count(const ModelSpec& model);

}  // namespace tessera
