#include "workloads/hugging_face/hugging_face_keys.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tessera {
namespace {

using nlohmann::json;

/// A key that says what no family expresses, unless it has its usual value (JSON; "" for none).
struct Rule {
  const char* key;
  const char* usual;
  const char* what;
};

constexpr const char* kMtp = "predicts more than the next token, which is not simulated";
constexpr const char* kLatent = "is latent attention, which is not simulated";
constexpr const char* kShared = "gives experts that all tokens share, which are not simulated";
constexpr const char* kStates = "gives state-space layers, which are not simulated";
constexpr const char* kScaled = "scales or caps values in kernels that are not simulated";
constexpr const char* kBiases = "gives linear layers biases that are not simulated";
constexpr const char* kMixedLayers = "makes some layers dense, which is not simulated";
constexpr const char* kDropout = "is a dropout that is not simulated";
constexpr const char* kKept = "keeps results of all layers, which is not simulated";

constexpr std::array kRules{
    Rule{"quantization_config", "",
         "says that weights are quantized, which is training.base_weights' under adapters (QLoRA)"},
    Rule{"full_attn_mod", "1", "gives attention that is not simulated"},
    Rule{"interpolate_factor", "1", "gives positions that are not simulated"},
    Rule{"compression_ratio", "1", "gives positions that are not simulated"},
    Rule{"compression_config", "", "says that weights are compressed, which is not simulated"},
    Rule{"kv_lora_rank", "", kLatent},
    Rule{"q_lora_rank", "", kLatent},
    Rule{"num_nextn_predict_layers", "0", kMtp},
    Rule{"n_shared_experts", "0", kShared},
    Rule{"num_shared_experts", "0", kShared},
    Rule{"shared_expert_intermediate_size", "0", kShared},
    Rule{"first_k_dense_replace", "0", kMixedLayers},
    Rule{"mlp_only_layers", "[]", kMixedLayers},
    Rule{"moe_layer_freq", "1", kMixedLayers},
    Rule{"interleave_moe_layer_step", "1", kMixedLayers},
    Rule{"ssm_state_size", "", kStates},
    Rule{"mamba_d_state", "", kStates},
    Rule{"mamba_d_ssm", "", kStates},
    Rule{"attention_bias", "false", kBiases},
    Rule{"mlp_bias", "false", kBiases},
    Rule{"enable_bias", "true", "takes biases away, which is not simulated"},
    Rule{"layer_norm_elementwise_affine", "true", "takes weights of norms away: not simulated"},
    Rule{"_remove_final_layer_norm", "false", "leaves out the last norm, which is not simulated"},
    Rule{"apply_residual_connection_post_layernorm", "false",
         "takes residuals behind the norm, which is not simulated"},
    Rule{"activation_dropout", "0", kDropout},
    Rule{"layerdrop", "0", kDropout},
    Rule{"resid_pdrop", "0", kDropout},
    Rule{"emb_pdrop", "0", kDropout},
    Rule{"embd_pdrop", "0", kDropout},
    Rule{"hidden_dropout", "0", kDropout},
    Rule{"residual_dropout", "0", kDropout},
    Rule{"embed_dropout", "0", kDropout},
    Rule{"embedding_dropout", "0", kDropout},
    Rule{"output_dropout", "0", kDropout},
    Rule{"use_rotary_pos_emb", "true", "takes positions away, which is not simulated"},
    Rule{"use_bidirectional_attention", "false",
         "lets tokens see those behind them, which is not simulated"},
    Rule{"use_cla", "false", "shares keys and values between layers, which is not simulated"},
    Rule{"pretraining_tp", "1", "cuts products into slices, which is not simulated"},
    Rule{"slow_but_exact", "false", "cuts products into slices, which is not simulated"},
    Rule{"chunk_size_feed_forward", "0", "cuts the feed-forward into chunks: not simulated"},
    Rule{"partial_rotary_factor", "1", "rotates a part of each head, which is not simulated"},
    Rule{"no_rope_layers", "[]", "leaves layers without positions, which is not simulated"},
    Rule{"no_rope_layer_interval", "", "leaves layers without positions, which is not simulated"},
    Rule{"position_embedding_type", "\"absolute\"", "gives positions that are not simulated"},
    Rule{"scale_attn_weights", "true", kScaled},
    Rule{"scale_attn_by_inverse_layer_idx", "false", kScaled},
    Rule{"reorder_and_upcast_attn", "false", "computes attention in fp32, which is not simulated"},
    Rule{"attn_logit_softcapping", "", kScaled},
    Rule{"final_logit_softcapping", "", kScaled},
    Rule{"logit_scale", "", kScaled},
    Rule{"logits_scaling", "1", kScaled},
    Rule{"embedding_multiplier", "1", kScaled},
    Rule{"residual_multiplier", "1", kScaled},
    Rule{"attention_multiplier", "", kScaled},
    Rule{"clip_qkv", "", kScaled},
    Rule{"qk_ln", "false", "normalizes queries and keys, which is not simulated here"},
    Rule{"qk_layernorm", "false", "normalizes queries and keys, which is not simulated here"},
    Rule{"use_qk_norm", "false", "normalizes queries and keys, which is not simulated here"},
    Rule{"attn_type", "\"multihead_attention\"", "shares keys and values, which is not simulated"},
    Rule{"prefix_lm", "false", "masks by prefix, which is not simulated"},
    Rule{"attn_uses_sequence_id", "false", "masks by document, which is not simulated"},
    Rule{"attention_chunk_size", "", "cuts attention into chunks, which is not simulated"},
    Rule{"output_attentions", "false", kKept},
    Rule{"output_hidden_states", "false", kKept},
    Rule{"output_router_logits", "false", "adds a loss of the router, which is not simulated"},
    Rule{"router_jitter_noise", "0", "adds noise before the router, which is not simulated"},
    Rule{"is_gated_act", "false", "gates the feed-forward, which is not simulated"},
    Rule{"feed_forward_proj", "\"relu\"", "gives a feed-forward that is not simulated"},
    Rule{"is_decoder", "false", "makes a decoder of an encoder, which is not simulated"},
    Rule{"add_cross_attention", "false", "gives cross-attention, which is not simulated"},
    Rule{"cross_attention_hidden_size", "", "gives cross-attention, which is not simulated"},
    Rule{"cross_attention_layers", "[]", "gives cross-attention, which is not simulated"},
    Rule{"pruned_heads", "{}", "takes heads away, which is not simulated"},
    Rule{"tie_encoder_decoder", "false", "shares two stacks' weights, which is not simulated"},
    Rule{"ffn_config", "{}", "gives a feed-forward of its own, which is not simulated"},
};

/// Between spaces: what no step depends on. Ids, names, generation, initialization, labels, heads
/// of classifiers, versions; constants within kernels (epsilons, frequencies of rotary positions);
/// which of transformers' kernels run, that a framework profile says instead.
constexpr std::string_view kHarmless =
    " architectures _from_model_config transformers.js_config auto_map transformers_version "
    "_name_or_path name_or_path _commit_hash "
    "model_type is_composition torch_dtype dtype tokenizer_class tokenizer_name tf_legacy_loss "
    "use_bfloat16 use_cache output_past return_dict return_dict_in_generate torchscript prefix "
    "_attn_implementation attn_implementation _attn_implementation_autoset _flash_attn_2_enabled "
    "_use_flash_attention_2 attn_impl init_device verbose unsloth_version unsloth_fixed "
    "max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty "
    "temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size "
    "encoder_no_repeat_ngram_size bad_words_ids num_return_sequences output_scores "
    "remove_invalid_values exponential_decay_length_penalty suppress_tokens "
    "begin_suppress_tokens is_encoder_decoder finetuning_task id2label label2id num_labels "
    "problem_type task_specific_params initializer_range initializer_factor init_std init_config "
    "init_method rms_norm_eps layer_norm_eps layer_norm_epsilon norm_epsilon norm_eps norm_type "
    "rope_theta rope_local_base_freq original_max_position_embeddings rope_interleaved "
    "rope_interleave "
    "classifier_dropout cache_implementation summary_activation summary_first_dropout "
    "summary_proj_to_labels summary_type summary_use_proj predict_special_tokens n_ctx "
    "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
    "pooler_size_per_head pooler_type masked_softmax_fusion attention_softmax_in_fp32 "
    "bias_dropout_fusion skip_bias_add skip_bias_add_qkv offset_alibi pretraining_pp "
    "alibi_bias_max softmax_scale embedding_fraction learned_pos_emb router_aux_loss_coef "
    "aux_loss_alpha norm_topk_prob router_z_loss_coef router_type router_dtype "
    "router_ignore_padding_tokens add_router_probs batch_prioritized_routing "
    "relative_attention_num_buckets relative_attention_max_distance ";

bool is_harmless(const std::string& key) {
  const bool is_id = key.ends_with("_token_id") || key.ends_with("_token_ids") ||
                     key.ends_with("_token_index") || key.ends_with("_token");
  return is_id || kHarmless.find(" " + key + " ") != std::string_view::npos;
}

bool is_usual(const Rule& rule, const json& value) {
  if (value.is_null()) return true;
  const json usual = json::parse(rule.usual, nullptr, false);
  return !usual.is_discarded() && value == usual;
}

const Rule* rule_of(const std::string& key) {
  const auto found = std::ranges::find_if(kRules, [&](const Rule& r) { return key == r.key; });
  return found == kRules.end() ? nullptr : &*found;
}

/// What published weights are stored as says nothing of training; adapters around weights in a few
/// bits do.
bool is_only_stored(ConfigReader& in, const std::string& key, const json& value) {
  if (key != "quantization_config" || !value.is_object()) return false;
  const json method = value.value("quant_method", json());
  if (method != "fp8" && method != "mxfp4" && method != "compressed-tensors") return false;
  in.approximate(in.prefix() + key + ": weights that are stored as " + method.get<std::string>() +
                 " are trained in the step's precision");
  return true;
}

/// Other frequencies, the same kernels.
bool is_known_scaling(const json& scaling) {
  if (scaling.is_null()) return true;
  if (!scaling.is_object()) return false;
  static constexpr std::string_view kTypes =
      " default linear dynamic ntk yarn llama3 longrope su mrope ";
  for (const char* key : {"rope_type", "type"}) {
    const auto type = scaling.find(key);
    if (type == scaling.end()) continue;
    return type->is_string() &&
           kTypes.find(" " + type->get<std::string>() + " ") != std::string_view::npos;
  }
  return true;
}

/// Positions of all layers, or of one kind of them.
void judge_scaling(ConfigReader& in, const char* key, const json& scaling) {
  if (!is_known_scaling(scaling))
    in.leave_out(key, "is " + ConfigReader::shown(scaling) + " of an unknown kind",
                 "known: linear, dynamic, yarn, llama3, longrope, mrope");
  if (!scaling.is_object()) return;
  const json part = scaling.value("partial_rotary_factor", json(1));
  if (part != json(1) && !in.was_read(std::string(key) + ".partial_rotary_factor"))
    in.leave_out(key, "rotates a part of each head, which is not simulated", "");
  if (scaling.contains("llama_4_scaling_beta"))
    in.approximate(in.prefix() + key +
                   ".llama_4_scaling_beta: a product over the queries of each layer is left out");
}

/// Files of transformers 5 may give an object for each of the layer_types.
void read_scaling(ConfigReader& in, const char* key) {
  const json& scaling = in.value(key);
  const bool by_type =
      scaling.is_object() && !scaling.empty() &&
      std::ranges::all_of(scaling, [](const json& one) { return one.is_object(); });
  if (!by_type) return judge_scaling(in, key, scaling);
  for (const json& one : scaling) judge_scaling(in, key, one);
}

}  // namespace

std::vector<std::string> judge_rest(ConfigReader& in, bool tower) {
  read_scaling(in, "rope_scaling");
  read_scaling(in, "rope_parameters");
  std::vector<std::string> harmless;
  for (const std::string& key : in.unread()) {
    const json& value = in.value(key.c_str());
    const Rule* rule = rule_of(key);
    const std::string is = "= " + ConfigReader::shown(value);
    if (is_only_stored(in, key, value)) continue;
    if (rule && is_usual(*rule, value)) {
      harmless.push_back(in.prefix() + key);
    } else if (rule) {
      in.leave_out(key, is + " " + rule->what, "");
    } else if (tower || value.is_null() || value == false || is_harmless(key)) {
      harmless.push_back(in.prefix() + key);
    } else {
      in.leave_out(key, is + " is not known: whether a step depends on it cannot be told",
                   "take it out of the file where none does");
    }
  }
  return harmless;
}

}  // namespace tessera
