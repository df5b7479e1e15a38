// Llama, and what readers of its siblings share.
#include "workloads/hugging_face/hugging_face_llama.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera {

using nlohmann::json;

void set_heads(ConfigReader& in, ModelSpec& model, const char* heads, const char* hidden) {
  model.heads = model.kv_heads = in.dimension(heads);
  if (!in.has("head_dim")) in.require_divisor(heads, model.heads, hidden, model.hidden);
  model.head_dim = std::max<std::int64_t>(1, model.hidden / model.heads);
}

void read_llama_sizes(ConfigReader& in, ModelSpec& model, const char* layers, const char* ffn) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension(layers, kMostHuggingFaceLayers);
  model.hidden = in.dimension("hidden_size");
  set_heads(in, model, "num_attention_heads", "hidden_size");
  model.head_dim = in.dimension_or("head_dim", model.head_dim);
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.ffn = in.dimension(ffn);
  model.vocab = in.dimension("vocab_size");
}

void read_llama(ConfigReader& in, ModelSpec& model) {
  read_llama_of_ffn(in, model, "intermediate_size");
}

void read_llama_of_ffn(ConfigReader& in, ModelSpec& model, const char* ffn) {
  read_llama_sizes(in, model, "num_hidden_layers", ffn);
  model.max_positions = 0;
  model.hidden_dropout = 0;
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.qkv_bias = model.output_bias = in.flag_or("attention_bias", false);
  model.mlp_bias = in.flag_or("mlp_bias", false);
  if (in.activation_or("hidden_act", Activation::silu) != Activation::silu) {
    in.fail("hidden_act", "is not silu", "the feed-forward of this model_type is silu-gated");
  }
  model.activation = Activation::swiglu;
}

/// LlamaAttention knows no windows, whatever the file of a converted model says (transformers 4.57,
/// models/llama/modeling_llama.py).
void read_llama_itself(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  for (const char* key : {"activation", "is_llama_config", "sliding_window", "use_sliding_window",
                          "max_window_layers"})
    in.ignore(key, "LlamaForCausalLM");
}

/// Where the code says which layers have biases (bias=False in MistralAttention, Phi3Attention and
/// their feed-forwards), the keys say nothing.
void read_llama_without_biases(ConfigReader& in, ModelSpec& model, const std::string& whose) {
  read_llama(in, model);
  model.qkv_bias = model.output_bias = model.mlp_bias = false;
  in.ignore("attention_bias", whose);
  in.ignore("mlp_bias", whose);
}

void read_mistral(ConfigReader& in, ModelSpec& model) {
  read_llama_without_biases(in, model, "MistralForCausalLM");
}

/// Qwen 2's biases are in its code, not in its file.
void read_qwen2(ConfigReader& in, ModelSpec& model) {
  read_llama_without_biases(in, model, "Qwen2ForCausalLM");
  model.qkv_bias = true;
}

void read_qwen3(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qk_norm = true;
}

namespace {

/// Where transformers 5 keeps what turns heads.
const json& in_rope_parameters(ConfigReader& in, const std::string& key) {
  static const json nothing;
  const json& rope = in.value("rope_parameters");
  if (!rope.is_object() || !rope.contains(key)) return nothing;
  in.note_read("rope_parameters." + key);
  return rope.at(key);
}

}  // namespace

void read_partial_rotary(ConfigReader& in, ModelSpec& model, const char* key, double usual) {
  double factor = usual;
  const json& inside = in_rope_parameters(in, "partial_rotary_factor");
  const json& given = in.has(key) ? in.value(key) : inside;
  if (!given.is_null()) {
    factor = given.is_number() ? given.get<double>() : -1;
    if (!(factor > 0 && factor <= 1)) {
      in.fail(in.has(key) ? key : "rope_parameters.partial_rotary_factor",
              "is " + ConfigReader::shown(given), "use a share above 0, up to 1");
      return;
    }
  }
  const auto part = static_cast<std::int64_t>(factor * static_cast<double>(model.head_dim));
  model.rope_dim = part < model.head_dim ? part : 0;
}

}  // namespace tessera
