// Models of delta nets and attention layers: transformers models/{qwen3_next,qwen3_5,qwen3_5_moe},
// and the code beside Kimi Linear's weights, modeling_kimi.py, as recalled.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/hugging_face/hugging_face_keys.h"
#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr const char* kTimes = "the kernels of gated delta nets were never measured";

/// layer_types, or every full_attention_interval-th layer attends.
std::string qwen_mixers(ConfigReader& in, const ModelSpec& model) {
  const std::int64_t interval = in.dimension_or("full_attention_interval", 4);
  const json& types = in.value("layer_types");
  std::string mixers;
  for (std::int64_t i = 0; i < model.layers; ++i)
    mixers += (i + 1) % interval == 0 ? layer_letter::kAttention : layer_letter::kDelta;
  if (types.is_null()) return mixers;
  if (!types.is_array() || static_cast<std::int64_t>(types.size()) != model.layers) {
    in.fail("layer_types",
            "is no list of a type for each of " + std::to_string(model.layers) + " layers",
            "give one for each");
    return mixers;
  }
  mixers.clear();
  for (const json& type : types) {
    if (type != "linear_attention" && type != "full_attention")
      in.fail("layer_types", "has " + ConfigReader::shown(type),
              "known: linear_attention, full_attention");
    mixers += type == "full_attention" ? layer_letter::kAttention : layer_letter::kDelta;
  }
  return mixers;
}

/// Gated delta nets, and the gate of the attention between them.
void read_delta_nets(ConfigReader& in, ModelSpec& model) {
  model.qk_norm = true;
  read_partial_rotary(in, model, "partial_rotary_factor", 0.25);
  model.delta_heads = in.dimension("linear_num_value_heads");
  model.delta_key_heads = in.dimension("linear_num_key_heads");
  model.delta_key_dim = in.dimension("linear_key_head_dim");
  model.delta_value_dim = in.dimension("linear_value_head_dim");
  in.require_divisor("linear_num_key_heads", model.delta_key_heads, "linear_num_value_heads",
                     model.delta_heads);
  if (in.dimension_or("linear_conv_kernel_dim", 4) != 4)
    in.fail("linear_conv_kernel_dim", "is not 4", "convolutions over 4 positions are simulated");
  if (in.flag_or("use_sliding_window", false))
    in.leave_out("use_sliding_window", "is true: no windows are simulated beside delta nets", "");
  for (const char* of_windows : {"sliding_window", "max_window_layers"}) in.has(of_windows);
  in.approximate(kTimes);
}

void read_qwen_experts(ConfigReader& in, ModelSpec& model) {
  set_experts(in, model, "num_experts", "num_experts_per_tok");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = in.dimension("shared_expert_intermediate_size");
  model.shared_gate = true;
}

/// What Qwen 3.5's file says besides. Its layers that predict further are not in transformers'
/// code.
void read_rest_of_qwen3_5(ConfigReader& in, ModelSpec& model) {
  model.attention_gate = in.flag_or("attn_output_gate", true);
  in.has("mamba_ssm_dtype");
  in.has("mtp_use_dedicated_embeddings");
  if (count_or_none(in, "mtp_num_hidden_layers") > 0)
    in.approximate(in.prefix() +
                   "mtp_num_hidden_layers: the layer that predicts further is left out, as "
                   "transformers' code has none");
}

}  // namespace

/// Gated delta nets between layers of attention with a gate; experts, or a feed-forward, behind
/// each.
void read_qwen3_next(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  read_delta_nets(in, model);
  model.attention_gate = true;
  read_qwen_experts(in, model);
  ModelSpec sparse = model;
  read_sparse_step(in, sparse);
  std::string seconds;
  for (std::int64_t i = 0; i < model.layers; ++i)
    seconds += has_experts(sparse, i) ? layer_letter::kExperts : layer_letter::kFeedForward;
  set_layer_pairs(model, qwen_mixers(in, model), seconds);
}

/// Qwen3-Next's mixers ahead of dense feed-forwards. Four projections lead into a delta net, which
/// Megatron's modules have as one.
void read_qwen3_5(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  read_delta_nets(in, model);
  read_rest_of_qwen3_5(in, model);
  const std::string mixers = qwen_mixers(in, model);
  set_layer_pairs(model, mixers, std::string(mixers.size(), layer_letter::kFeedForward));
}

/// All layers have experts, and the file gives no other size.
void read_qwen3_5_moe(ConfigReader& in, ModelSpec& model) {
  read_llama_of_ffn(in, model, in.name_in_use("intermediate_size", "moe_intermediate_size"));
  read_delta_nets(in, model);
  read_rest_of_qwen3_5(in, model);
  read_qwen_experts(in, model);
  const std::string mixers = qwen_mixers(in, model);
  set_layer_pairs(model, mixers, std::string(mixers.size(), layer_letter::kExperts));
}

namespace {

/// Marks layers that a list names, from 1, with a letter.
void mark_layers(ConfigReader& in, const char* key, char letter, std::string& mixers) {
  const auto layers = static_cast<std::int64_t>(mixers.size());
  for (const json& number : in.value(key)) {
    const bool is_layer = number.is_number_integer() && number >= 1 && number <= layers;
    const std::size_t index = is_layer ? number.get<std::size_t>() - 1 : 0;
    if (is_layer && mixers[index] == ' ')
      mixers[index] = letter;
    else
      in.fail(key, "has " + ConfigReader::shown(number),
              "name each layer once, from 1 to " + std::to_string(layers) +
                  ", in kda_layers or in full_attn_layers");
  }
}

/// Kimi delta attention's sizes, and which layers have it.
std::string read_linear_attention(ConfigReader& in, ModelSpec& model) {
  model.delta_heads = model.delta_key_heads = in.dimension("num_heads");
  model.delta_key_dim = model.delta_value_dim = in.dimension("head_dim");
  if (in.dimension_or("short_conv_kernel_size", 4) != 4)
    in.fail("short_conv_kernel_size", "is not 4", "convolutions over 4 positions are simulated");
  std::string mixers(static_cast<std::size_t>(model.layers), ' ');
  mark_layers(in, "kda_layers", layer_letter::kKimiDelta, mixers);
  mark_layers(in, "full_attn_layers", layer_letter::kAttention, mixers);
  if (const auto missing = mixers.find(' '); missing != std::string::npos)
    in.fail("kda_layers", "and full_attn_layers do not name layer " + std::to_string(missing + 1),
            "name each layer once, from 1 on");
  judge_rest(in);
  return mixers;
}

}  // namespace

/// Three of four layers are delta nets with a decay per channel, the others latent attention
/// without positions.
void read_kimi_linear(ConfigReader& in, ModelSpec& model) {
  read_latent_model(in, model);
  if (!in.flag_or("mla_use_nope", true))
    in.leave_out("mla_use_nope", "is false: its latent attention is simulated without positions",
                 "use model_type kimi_k2 for attention with them");
  model.attention_pattern = attention_letter::kWithoutPositions;
  const json object = in.object_or_empty("linear_attn_config");
  ConfigReader linear = in.inside(object, "linear_attn_config");
  const std::string mixers = read_linear_attention(linear, model);
  in.take_findings(linear);
  set_experts(in, model, "num_experts", "num_experts_per_token");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = count_or_none(in, "num_shared_experts") * model.expert_ffn;
  set_groups(in, model, "num_experts", "num_expert_group");
  model.router_sigmoid = in.text_or("moe_router_activation_func", "sigmoid") == "sigmoid";
  model.router_bias = true;
  ModelSpec sparse = model;
  set_dense_layers(in, sparse);
  std::string seconds(mixers.size(), layer_letter::kExperts);
  for (std::int64_t i = 0; i < std::min(sparse.dense_layers, model.layers); ++i)
    seconds[static_cast<std::size_t>(i)] = layer_letter::kFeedForward;
  set_layer_pairs(model, mixers, seconds);
  for (const char* within : {"moe_renormalize", "use_grouped_topk", "routed_scaling_factor"})
    in.has(within);
  in.approximate("the kernels of Kimi delta attention were never measured");
}

}  // namespace tessera
