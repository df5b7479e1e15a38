#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// Families whose operator graphs we know.
enum class ModelFamily : std::uint8_t {
#include "configs/schema/words/model_family.inc"
};

/// Whether positions enter as a bias on attention scores that grows with the distance.
/// Source: Press et al., "Train Short, Test Long", ICLR 2022.
constexpr bool has_alibi(ModelFamily family) {
  return family == ModelFamily::bloom || family == ModelFamily::mpt;
}

/// Image models (family vision), each with its published dimensions: workloads/vision.
enum class VisionArchitecture : std::uint8_t {
#include "configs/schema/words/vision_architecture.inc"
};

enum class Activation : std::uint8_t {
#include "configs/schema/words/activation.inc"
};

/// Norms of family llama.
enum class NormKind : std::uint8_t {
#include "configs/schema/words/norm_kind.inc"
};

/// Where a branch has its norms.
enum class NormPlacement : std::uint8_t {
#include "configs/schema/words/norm_placement.inc"
};

/// How attention and feed-forward follow each other.
enum class BlockOrder : std::uint8_t {
#include "configs/schema/words/block_order.inc"
};

/// Dimensions of a transformer, read from a Hugging Face config.json or one of our model files: all
/// counts > 0 unless noted. Of an image model: name, family and the last three.
struct ModelSpec {
#include "configs/schema/fields/model_spec.inc"
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
