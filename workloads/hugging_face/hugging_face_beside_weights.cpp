// Models whose code lies beside their weights, of 2023 and 2024: ChatGLM 2 and 3 and GLM-4
// (modeling_chatglm.py), Qwen (modeling_qwen.py), InternLM 3, MiniCPM 3, and DBRX
// (transformers 4.57, models/dbrx), as recalled.
#include <nlohmann/json.hpp>

#include "workloads/hugging_face/hugging_face_families.h"
#include "workloads/hugging_face/hugging_face_keys.h"
#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

using nlohmann::json;

/// A switch that the code beside the weights has, of which one side is simulated.
void require_switch(ConfigReader& in, const char* key, bool usual) {
  if (in.flag_or(key, usual) != usual)
    in.leave_out(key, "= " + std::string(usual ? "false" : "true") + " is not simulated", "");
}

/// What both call kv_channels; rotary positions turn one of `parts_turned` of it.
void set_channels(ConfigReader& in, ModelSpec& model, std::int64_t parts_turned) {
  model.heads = model.kv_heads = in.dimension("num_attention_heads");
  model.head_dim = in.dimension("kv_channels");
  model.rope_dim = parts_turned == 1 ? 0 : model.head_dim / parts_turned;
}

}  // namespace

/// Queries, keys and values alone have biases; half of each head is turned.
void read_chatglm(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_layers", kMostHuggingFaceLayers);
  if (in.dimension_or("num_hidden_layers", model.layers) != model.layers)
    in.fail("num_hidden_layers", "differs from num_layers", "check both");
  model.hidden = in.dimension("hidden_size");
  set_channels(in, model, 2);
  if (in.flag_or("multi_query_attention", false))
    model.kv_heads = in.dimension("multi_query_group_num");
  in.has("multi_query_group_num");
  in.require_divisor("multi_query_group_num", model.kv_heads, "num_attention_heads", model.heads);
  model.ffn = in.dimension("ffn_hidden_size");
  model.vocab = in.dimension("padded_vocab_size");
  in.has("vocab_size");
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.activation = Activation::swiglu;
  const bool all = in.flag_or("add_bias_linear", false);
  model.qkv_bias = in.flag_or("add_qkv_bias", false) || all;
  model.output_bias = model.mlp_bias = all;
  if (!in.flag_or("rmsnorm", true)) model.norm = NormKind::layer_norm;
  require_switch(in, "post_layer_norm", true);
  require_switch(in, "fp32_residual_connection", false);
  in.has("apply_query_key_layer_scaling");  // divides by a number, then multiplies by it
  for (const char* within : {"layernorm_epsilon", "original_rope", "rope_ratio"}) in.has(within);
  if (count_or_none(in, "pre_seq_len") > 0)
    in.leave_out("pre_seq_len", "trains a prefix, which is not simulated", "");
  if (count_or_none(in, "quantization_bit") > 0)
    in.leave_out("quantization_bit", "says that weights are quantized", "");
}

/// The first Qwen: intermediate_size is that of gate and branch together.
void read_qwen(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostHuggingFaceLayers);
  model.hidden = in.dimension("hidden_size");
  set_channels(in, model, 1);
  model.ffn = in.dimension("intermediate_size") / 2;
  model.vocab = in.dimension("vocab_size");
  model.hidden_dropout = in.probability_or("emb_dropout_prob", 0.0);
  model.attention_dropout = in.probability_or("attn_dropout_prob", 0.0);
  if (model.hidden_dropout > 0)
    in.approximate(in.prefix() + "emb_dropout_prob: of all branches, not of embeddings alone");
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.activation = Activation::swiglu;
  model.qkv_bias = true;
  require_switch(in, "no_bias", true);
  read_partial_rotary(in, model, "rotary_pct", 1);
  for (const char* within :
       {"rotary_emb_base", "seq_length", "use_logn_attn", "use_dynamic_ntk", "use_flash_attn",
        "onnx_safe", "bf16", "fp16", "fp32", "use_cache_quantization", "use_cache_kernel",
        "softmax_in_fp32", "scale_attn_weights"})
    in.has(within);
}

/// Of queries, keys and values one switch, of all other linear layers another.
void read_internlm3(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qkv_bias = in.flag_or("qkv_bias", false);
  model.output_bias = model.mlp_bias = in.flag_or("bias", false);
}

/// MiniCPM's scales around DeepSeek's attention; values are as large as a plain head.
void read_minicpm3(ConfigReader& in, ModelSpec& model) {
  const std::int64_t heads = in.dimension("num_attention_heads");
  read_latent_model(in, model, in.dimension("hidden_size") / heads);
  read_scales_of_minicpm(in, model);
}

namespace {

void read_dbrx_attention(ConfigReader& in, ModelSpec& model) {
  model.kv_heads = in.dimension_or("kv_n_heads", 1);
  in.require_divisor("kv_n_heads", model.kv_heads, "n_heads", model.heads);
  model.attention_dropout = in.probability_or("attn_pdrop", 0.0);
  if (in.has("clip_qkv"))
    in.approximate(in.prefix() +
                   "clip_qkv: the pass that clips queries, keys and values is left out");
}

void read_dbrx_experts(ConfigReader& in, ModelSpec& model) {
  model.ffn = in.dimension("ffn_hidden_size");
  set_experts(in, model, "moe_num_experts", "moe_top_k");
  const json& act = in.value("ffn_act_fn");
  if (act.is_object() && act.value("name", json("silu")) != "silu")
    in.fail("ffn_act_fn", "is not silu", "DBRX' experts are silu-gated");
  if (const json& jitter = in.value("moe_jitter_eps"); !jitter.is_null() && jitter != 0)
    in.leave_out("moe_jitter_eps", "adds noise before the router, which is not simulated", "");
  for (const char* within : {"moe_loss_weight", "moe_normalize_expert_weights"}) in.has(within);
}

/// Reads the object under `key`, which has keys of its own.
void read_part(ConfigReader& in, ModelSpec& model, const char* key, ReadFamily read) {
  const json object = in.object_or_empty(key);
  ConfigReader part = in.inside(object, key);
  read(part, model);
  judge_rest(part);
  in.take_findings(part);
}

}  // namespace

/// Layer norms without biases, experts in every layer.
void read_dbrx(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.norm = NormKind::layer_norm_without_bias;
  model.layers = in.dimension("n_layers", kMostHuggingFaceLayers);
  model.hidden = in.dimension("d_model");
  set_heads(in, model, "n_heads", "d_model");
  model.vocab = in.dimension("vocab_size");
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.activation = Activation::swiglu;
  model.hidden_dropout = 0;
  read_part(in, model, "attn_config", read_dbrx_attention);
  read_part(in, model, "ffn_config", read_dbrx_experts);
}

}  // namespace tessera
