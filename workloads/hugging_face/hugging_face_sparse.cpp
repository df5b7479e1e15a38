// Models with shared experts, latent attention or biased experts: transformers 4.57,
// models/NAME/modeling_NAME.py; DeepSeek-V3 by the code beside its weights.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

void read_experts(ConfigReader& in, ModelSpec& model, const char* experts) {
  model.experts = in.dimension(experts);
  model.experts_per_token = in.dimension("num_experts_per_tok");
  check_experts_per_token(in, model, experts, "num_experts_per_tok");
  if (in.has("moe_intermediate_size")) model.expert_ffn = in.dimension("moe_intermediate_size");
}

}  // namespace

std::int64_t count_or_none(ConfigReader& in, const char* key) {
  const nlohmann::json& value = in.value(key);
  return value.is_null() || value == 0 ? 0 : in.dimension(key);
}

void set_dense_layers(ConfigReader& in, ModelSpec& model) {
  model.dense_layers = count_or_none(in, "first_k_dense_replace");
  if (model.dense_layers >= model.layers)
    in.fail("first_k_dense_replace", "leaves no layer experts", "use fewer than num_hidden_layers");
}

void set_groups(ConfigReader& in, ModelSpec& model, const char* experts, const char* key) {
  const std::int64_t groups = count_or_none(in, key);
  model.router_groups = groups > 1 ? groups : 0;
  if (groups > 1) in.require_divisor(key, groups, experts, model.experts);
  const std::int64_t kept = count_or_none(in, "topk_group");
  if (kept > std::max<std::int64_t>(groups, 1))
    in.fail("topk_group", "= " + std::to_string(kept) + " exceeds " + key, "check both");
}

/// Shared experts are so many of the routed ones' size side by side.
void read_deepseek_experts(ConfigReader& in, ModelSpec& model) {
  read_experts(in, model, "n_routed_experts");
  model.shared_ffn = count_or_none(in, "n_shared_experts") * model.expert_ffn;
  set_dense_layers(in, model);
  if (in.dimension_or("moe_layer_freq", 1) != 1)
    in.fail("moe_layer_freq", "is not 1", "layers behind the first ones all have experts");
  set_groups(in, model, "n_routed_experts");
  for (const char* within : {"topk_method", "routed_scaling_factor", "seq_aux", "aux_loss_alpha",
                             "ep_size", "norm_topk_prob"})
    in.has(within);
}

namespace {

void read_latent_attention(ConfigReader& in, ModelSpec& model, std::int64_t value_dim) {
  model.kv_rank = in.dimension("kv_lora_rank");
  if (in.has("q_lora_rank")) model.q_rank = in.dimension("q_lora_rank");
  model.rope_dim = in.dimension("qk_rope_head_dim");
  model.head_dim = model.rope_dim + in.dimension("qk_nope_head_dim");
  model.v_head_dim =
      value_dim > 0 ? in.dimension_or("v_head_dim", value_dim) : in.dimension("v_head_dim");
  for (const char* derived : {"head_dim", "qk_head_dim", "num_key_value_heads"}) in.has(derived);
  model.kv_heads = model.heads;
}

}  // namespace

/// Ahead of what Llama's reader derives of hidden and heads.
void read_latent_model(ConfigReader& in, ModelSpec& model, std::int64_t value_dim) {
  in.has("head_dim");
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostHuggingFaceLayers);
  model.hidden = in.dimension("hidden_size");
  model.heads = in.dimension("num_attention_heads");
  model.ffn = in.dimension("intermediate_size");
  model.vocab = in.dimension("vocab_size");
  model.hidden_dropout = 0;
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  if (in.activation_or("hidden_act", Activation::silu) != Activation::silu)
    in.fail("hidden_act", "is not silu", "the feed-forward of this model_type is silu-gated");
  model.activation = Activation::swiglu;
  read_latent_attention(in, model, value_dim);
}

void read_further_layers(ConfigReader& in, ModelSpec& model) {
  set_further_layers(in, model, "num_nextn_predict_layers");
}

void set_further_layers(ConfigReader& in, ModelSpec& model, const char* key) {
  constexpr std::int64_t kMost = 16;
  model.mtp_layers = count_or_none(in, key);
  if (model.mtp_layers <= kMost) return;
  in.fail(key, "is " + std::to_string(model.mtp_layers), "use up to " + std::to_string(kMost));
}

void read_deepseek_v2(ConfigReader& in, ModelSpec& model) {
  read_latent_model(in, model);
  read_deepseek_experts(in, model);
  in.has("scoring_func");
}

void read_deepseek_v3(ConfigReader& in, ModelSpec& model) {
  read_latent_model(in, model);
  read_deepseek_experts(in, model);
  model.router_sigmoid = in.text_or("scoring_func", "sigmoid") == "sigmoid";
  model.router_bias = in.text_or("topk_method", "noaux_tc") == "noaux_tc";
  read_further_layers(in, model);
}

/// With an indexer in every layer (DeepSeek V3.2, GLM-5).
void read_deepseek_v32(ConfigReader& in, ModelSpec& model) {
  read_deepseek_v3(in, model);
  model.index_heads = in.dimension("index_n_heads");
  model.index_head_dim = in.dimension("index_head_dim");
  model.index_topk = in.dimension("index_topk");
  if (model.q_rank == 0)
    in.fail("q_lora_rank", "is missing: the indexer's queries come from it", "give the rank");
  if (model.index_head_dim < model.rope_dim)
    in.fail("index_head_dim", "is less than qk_rope_head_dim", "use that or more");
  in.has("indexer_rope_interleave");
}

void read_glm4_moe(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.output_bias = false;
  model.qk_norm = in.flag_or("use_qk_norm", false);
  read_partial_rotary(in, model, "partial_rotary_factor", 0.5);
  read_deepseek_experts(in, model);
  model.router_sigmoid = model.router_bias = true;
  read_further_layers(in, model);
}

/// The biases of attention are in its file, those of experts in its code.
void read_gpt_oss(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qkv_bias = model.output_bias = in.flag_or("attention_bias", true);
  read_experts(in, model, "num_local_experts");
  in.has("experts_per_token");
  model.expert_bias = model.attention_sinks = true;
  read_window(in, model, in.dimension_or("sliding_window", 128), 2);
  for (const char* within : {"swiglu_limit", "initial_context_length"}) in.has(within);
}

void read_qwen2_moe(ConfigReader& in, ModelSpec& model) {
  read_qwen2(in, model);
  read_experts(in, model, "num_experts");
  model.shared_ffn = in.dimension("shared_expert_intermediate_size");
  model.shared_gate = true;
  model.qkv_bias = in.flag_or("qkv_bias", true);
  read_sparse_step(in, model);
}

}  // namespace tessera
