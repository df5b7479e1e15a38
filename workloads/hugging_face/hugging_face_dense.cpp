// Dense siblings of Llama with RMS norms: transformers 4.57, models/NAME/modeling_NAME.py;
// InternLM 2, MiniCPM, EXAONE 3 and Baichuan by the code beside their weights.
#include <nlohmann/json.hpp>

#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

/// What Llama's reader would call by other names.
void read_gelu_gated(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostHuggingFaceLayers);
  model.hidden = in.dimension("hidden_size");
  model.heads = in.dimension("num_attention_heads");
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.head_dim = in.dimension_or("head_dim", 256);
  model.ffn = in.dimension("intermediate_size");
  model.vocab = in.dimension("vocab_size");
  model.hidden_dropout = 0;
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  model.qkv_bias = model.output_bias = in.flag_or("attention_bias", false);
  const char* act = in.name_in_use("hidden_activation", "hidden_act");
  in.has("hidden_act");
  if (in.activation_or(act, Activation::gelu) != Activation::gelu)
    in.fail(act, "is not gelu", "Gemma's feed-forward is gelu-gated");
  model.activation = Activation::geglu;
  model.embedding_scale = true;
  in.has("query_pre_attn_scalar");
}

/// Whether a key is there and other than one.
bool multiplies(ConfigReader& in, const char* key) {
  const nlohmann::json& value = in.value(key);
  if (value.is_null()) return false;
  if (value.is_number()) return value.get<double>() != 1;
  in.fail(key, "is " + ConfigReader::shown(value), "use a number");
  return false;
}

/// A number that caps values; 0 and null are none.
bool caps(ConfigReader& in, const char* key, bool usual) {
  const bool given = in.has(key);
  const nlohmann::json& value = in.value(key);
  return given ? value.is_number() && value.get<double>() > 0 : usual;
}

}  // namespace

void read_gemma(ConfigReader& in, ModelSpec& model) {
  read_gelu_gated(in, model);
}

void read_gemma2(ConfigReader& in, ModelSpec& model) {
  read_gelu_gated(in, model);
  model.norm_placement = NormPlacement::both;
  model.attention_softcap = caps(in, "attn_logit_softcapping", false);
  model.logit_softcap = caps(in, "final_logit_softcapping", false);
  in.has("cache_implementation");
  const std::int64_t window = in.dimension_or("sliding_window", 4096);
  if (in.dimension_or("sliding_window_size", window) != window)
    in.fail("sliding_window_size", "differs from sliding_window = " + std::to_string(window),
            "take it out: transformers reads sliding_window");
  read_window(in, model, window, 2);
}

void read_gemma3(ConfigReader& in, ModelSpec& model) {
  read_gelu_gated(in, model);
  model.norm_placement = NormPlacement::both;
  model.qk_norm = true;
  model.attention_softcap = caps(in, "attn_logit_softcapping", false);
  model.logit_softcap = caps(in, "final_logit_softcapping", false);
  in.has("cache_implementation");
  const char* pattern = in.name_in_use("sliding_window_pattern", "_sliding_window_pattern");
  read_window(in, model, in.dimension_or("sliding_window", 4096), in.dimension_or(pattern, 6));
}

/// Fused projections, as many parameters.
void read_phi3(ConfigReader& in, ModelSpec& model) {
  read_llama_without_biases(in, model, "Phi3ForCausalLM");
  model.hidden_dropout = in.probability_or("resid_pdrop", 0.0);
  read_partial_rotary(in, model, "partial_rotary_factor", 1);
}

void read_olmo2(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.norm_placement = NormPlacement::after;
  model.qk_norm = model.qk_norm_wide = true;
}

void read_olmo3(ConfigReader& in, ModelSpec& model) {
  read_olmo2(in, model);
  read_window(in, model, in.dimension_or("sliding_window", 4096), 4);
}

void read_internlm2(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qkv_bias = model.output_bias = in.flag_or("bias", false);
}

void read_granite(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.embedding_scale = multiplies(in, "embedding_multiplier");
  model.residual_scale = multiplies(in, "residual_multiplier");
  model.logit_scale = multiplies(in, "logits_scaling");
  in.has("attention_multiplier");  // in the place of 1 / sqrt(head_dim)
}

void read_minicpm(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  read_scales_of_minicpm(in, model);
}

void read_scales_of_minicpm(ConfigReader& in, ModelSpec& model) {
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  model.embedding_scale = multiplies(in, "scale_emb");
  model.residual_scale = in.has("scale_depth");
  model.logit_scale = in.has("dim_model_base");
  in.has("mup_denominator");  // of the learning rate
}

void read_exaone(ConfigReader& in, ModelSpec& model) {
  read_llama_sizes(in, model, "num_layers");
  model.hidden_dropout = in.probability_or("embed_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  if (in.activation_or("activation_function", Activation::silu) != Activation::silu)
    in.fail("activation_function", "is not silu", "EXAONE's feed-forward is silu-gated");
  model.activation = Activation::swiglu;
}

/// The 13B has ALiBi, and no max_position_embeddings.
void read_baichuan(ConfigReader& in, ModelSpec& model) {
  if (!in.has("max_position_embeddings"))
    in.leave_out("model_type",
                 "baichuan without max_position_embeddings has ALiBi, which is not "
                 "simulated with RMS norms",
                 "use the 7B");
  in.has("model_max_length");
  in.has("z_loss_weight");
  read_llama(in, model);
}

}  // namespace tessera
