// Models with experts of 2024 to 2026: transformers 4.57, models/NAME/modeling_NAME.py, as
// recalled.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

using nlohmann::json;

/// The number that every entry of a list has, or the value alone.
std::int64_t same_in_all_layers(ConfigReader& in, const char* key, std::int64_t usual) {
  const json& value = in.value(key);
  if (value.is_null()) return usual;
  if (!value.is_array()) return in.dimension(key);
  const bool same = !value.empty() && value.front().is_number_integer() && value.front() >= 1 &&
                    std::ranges::all_of(value, [&](const json& v) { return v == value.front(); });
  if (same && value.front() <= 10'000'000) return value.front().get<std::int64_t>();
  in.leave_out(key, "is a list of different numbers, which is not simulated", "");
  return usual;
}

}  // namespace

void set_experts(ConfigReader& in, ModelSpec& model, const char* experts, const char* per_token) {
  model.experts = in.dimension(experts);
  model.experts_per_token =
      in.has(per_token) ? same_in_all_layers(in, per_token, 1) : in.dimension(per_token);
  check_experts_per_token(in, model, experts, per_token);
}

void set_expert_layers(ConfigReader& in, ModelSpec& model, const std::string& letters,
                       const char* key) {
  if (!set_expert_pattern(model, letters)) in.fail(key, "leaves no layer experts", "check it");
}

void check_experts_per_token(ConfigReader& in, const ModelSpec& model, const char* experts,
                             const char* per_token) {
  if (model.experts_per_token <= model.experts) return;
  in.fail(per_token,
          "= " + std::to_string(model.experts_per_token) + " exceeds " + experts + " = " +
              std::to_string(model.experts),
          "check both");
}

/// Layers (i + 1) that `decoder_sparse_step` divides have experts, but those of `mlp_only_layers`.
void read_sparse_step(ConfigReader& in, ModelSpec& model) {
  const std::int64_t step = in.dimension_or("decoder_sparse_step", 1);
  const json& dense = in.value("mlp_only_layers");
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const bool listed = dense.is_array() && std::ranges::find(dense, json(i)) != dense.end();
    letters += !listed && (i + 1) % step == 0 ? layer_letter::kExperts : '-';
  }
  set_expert_layers(in, model, letters, "decoder_sparse_step");
}

/// Of 16 to 128 experts a token meets one, and a shared one as large; windows are chunks.
void read_llama4(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.expert_ffn = model.shared_ffn = model.ffn;
  model.ffn = in.dimension("intermediate_size_mlp");
  set_experts(in, model, "num_local_experts", "num_experts_per_tok");
  model.router_sigmoid = true;
  model.qk_norm = model.qk_norm_plain = in.flag_or("use_qk_norm", true);
  const std::int64_t every = in.dimension_or("interleave_moe_layer_step", 1);
  const json& listed = in.value("moe_layers");
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const bool sparse = listed.is_array() && !listed.empty()
                            ? std::ranges::find(listed, json(i)) != listed.end()
                            : (i + 1) % every == 0;
    letters += sparse ? layer_letter::kExperts : '-';
  }
  set_expert_layers(in, model, letters, "moe_layers");
  read_window(in, model, in.dimension_or("attention_chunk_size", 8192), 0);
  model.window_chunks = model.window > 0;
  read_positions(in, model, 4);
  if (const json& tuned = in.value("attn_temperature_tuning");
      !tuned.is_null() && tuned != false && tuned != 0)
    in.approximate(in.prefix() +
                   "attn_temperature_tuning: a product over the queries of layers without "
                   "positions is left out");
  for (const char* within : {"attn_scale", "floor_scale", "for_llm_compressor"}) in.has(within);
}

void read_deepseek_moe(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  read_deepseek_experts(in, model);
  in.has("scoring_func");
}

/// DeepSeek-V3's experts behind grouped queries.
void read_dots1(ConfigReader& in, ModelSpec& model) {
  read_deepseek_moe(in, model);
  model.qk_norm = true;
  model.router_sigmoid = model.router_bias = true;
}

/// Ling and Ring: the code beside their weights, modeling_bailing_moe_v2.py.
void read_bailing_moe(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.output_bias = in.flag_or("use_bias", false);
  model.qkv_bias = in.flag_or("use_qkv_bias", false) || model.output_bias;
  model.qk_norm = in.flag_or("use_qk_norm", false);
  read_partial_rotary(in, model, "partial_rotary_factor", 1);
  set_experts(in, model, "num_experts", "num_experts_per_tok");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = count_or_none(in, "num_shared_experts") *
                     in.dimension_or("moe_shared_expert_intermediate_size", model.expert_ffn);
  set_dense_layers(in, model);
  set_groups(in, model, "num_experts");
  model.router_sigmoid = in.text_or("score_function", "softmax") == "sigmoid";
  model.router_bias = in.flag_or("moe_router_enable_expert_bias", false);
  read_further_layers(in, model);
  for (const char* within : {"routed_scaling_factor", "norm_softmax", "use_rmsnorm", "rotary_dim",
                             "max_window_layers", "multi_gate"})
    in.has(within);
  for (const char* of_deepseek : {"scoring_func", "topk_method", "seq_aux"})
    in.ignore(of_deepseek, "BailingMoeForCausalLM");
}

void read_olmoe(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  set_experts(in, model, "num_experts", "num_experts_per_tok");
  model.qk_norm = model.qk_norm_wide = true;
}

void read_minimax_m2(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  set_experts(in, model, "num_local_experts", "num_experts_per_tok");
  model.qk_norm = in.flag_or("use_qk_norm", true);
  model.qk_norm_wide = model.qk_norm && in.text_or("qk_norm_type", "per_layer") == "per_layer";
  model.router_sigmoid = in.text_or("scoring_func", "sigmoid") == "sigmoid";
  model.router_bias = in.flag_or("use_routing_bias", true);
  if (const std::int64_t part = in.dimension_or("rotary_dim", model.head_dim);
      part < model.head_dim)
    model.rope_dim = part;
  if (in.flag_or("use_mtp", false)) {
    const std::int64_t each = in.dimension_or("mtp_transformer_layers", 1);
    if (each > 1) in.leave_out("mtp_transformer_layers", "is not 1, which is not simulated", "");
    set_further_layers(in, model, "num_mtp_modules");
  }
  in.has("num_mtp_modules");
  in.has("mtp_transformer_layers");
  same_in_all_layers(in, "attn_type_list", 1);
  model.shared_ffn = count_or_none(in, "shared_intermediate_size");
  for (const char* of_another :
       {"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta",
        "mlp_intermediate_size", "shared_moe_mode", "swa_rope_theta"})
    in.ignore(of_another, "MiniMaxM2ForCausalLM");
}

/// Layer norms with biases, and biases of attention and head.
void read_phimoe(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  set_experts(in, model, "num_local_experts", "num_experts_per_tok");
  model.norm = NormKind::layer_norm;
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.head_bias = in.flag_or("lm_head_bias", false);
  for (const char* within : {"router_jitter_noise", "input_jitter_noise"}) in.has(within);
}

void read_granite_moe(ConfigReader& in, ModelSpec& model) {
  read_granite(in, model);
  const std::int64_t shared = count_or_none(in, "shared_intermediate_size");
  if (count_or_none(in, "num_local_experts") > 0) {
    set_experts(in, model, "num_local_experts", "num_experts_per_tok");
    model.shared_ffn = shared;
    return;
  }
  in.has("num_experts_per_tok");
  if (shared > 0) model.ffn = shared;
}

void read_ernie4_5_moe(ConfigReader& in, ModelSpec& model) {
  read_ernie4_5(in, model);
  set_experts(in, model, "moe_num_experts", "moe_k");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = count_or_none(in, "moe_num_shared_experts") * model.expert_ffn;
  model.router_bias = in.flag_or("moe_use_aux_free", true);
  const std::int64_t first = count_or_none(in, "moe_layer_start_index");
  const json& end = in.value("moe_layer_end_index");
  const std::int64_t last =
      end.is_null() || end == -1 ? model.layers - 1 : in.dimension("moe_layer_end_index");
  const std::int64_t interval = in.dimension_or("moe_layer_interval", 1);
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i)
    letters += i >= first && i <= last && (i + 1) % interval == 0 ? layer_letter::kExperts : '-';
  set_expert_layers(in, model, letters, "moe_layer_start_index");
  for (const char* within : {"moe_capacity", "moe_gate", "moe_norm_min"}) in.has(within);
  read_further_layers(in, model);
}

void ignore_of_hunyuan(ConfigReader& in, const char* whose) {
  in.has("attention_head_dim");
  for (const char* unread : {"add_classification_head",
                             "cla_share_factor",
                             "class_num",
                             "dense_list",
                             "enable_lm_head_fp32",
                             "group_limited_greedy",
                             "im_end_id",
                             "im_newline_id",
                             "im_start_id",
                             "mask_init_id",
                             "moe_random_routing_dropped_token",
                             "num_media_embeds",
                             "org_vocab_size",
                             "pad_id",
                             "pool_type",
                             "position_embedding_xdrope",
                             "sep_token",
                             "text_end_id",
                             "text_start_id",
                             "video_end_id",
                             "video_start_id",
                             "xdrope_section"})
    in.ignore(unread, whose);
}

void read_hunyuan_moe(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  set_experts(in, model, "num_experts", "moe_topk");
  model.expert_ffn = same_in_all_layers(in, "moe_intermediate_size", model.ffn);
  if (in.flag_or("use_mixed_mlp_moe", true))
    model.shared_ffn = same_in_all_layers(in, "num_shared_expert", 1) * model.ffn;
  in.has("num_shared_expert");
  model.qk_norm = in.flag_or("use_qk_norm", true);
  model.dense_layers = count_or_none(in, "moe_layer_num_skipped");
  ignore_of_hunyuan(in, "HunYuanMoEV1ForCausalLM");
  if (in.flag_or("moe_drop_tokens", false))
    in.leave_out("moe_drop_tokens", "drops tokens, which is not simulated here", "");
}

}  // namespace tessera
