// Models of 2025 whose heads or gates are of their own make: transformers models/afmoe (Trinity),
// the code beside the weights of MiMo-V2-Flash (modeling_mimo_v2_flash.py) and of Step-3
// (modeling_step3.py), as recalled.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

using nlohmann::json;

/// `one` for layers whose entry in the list under `key` is 1, `other` for those with 0.
std::string letters_of_flags(ConfigReader& in, const ModelSpec& model, const char* key, char one,
                             char other) {
  std::string letters;
  const json& list = in.value(key);
  for (const json& flag : list) letters += flag == 1 ? one : other;
  const bool flags = list.is_array() && std::ranges::all_of(list, [](const json& flag) {
                       return flag == 0 || flag == 1;
                     });
  if (flags && static_cast<std::int64_t>(list.size()) == model.layers) return letters;
  in.fail(key, "is no list of 0 or 1 for each of " + std::to_string(model.layers) + " layers",
          "give one for each");
  return std::string(static_cast<std::size_t>(model.layers), other);
}

/// A number of layers with a window that the others have under a name of their own.
void require_same(ConfigReader& in, const char* key, const char* of_others, std::int64_t size) {
  if (in.dimension_or(key, size) != size)
    in.fail(key, "differs from " + std::string(of_others) + " = " + std::to_string(size),
            "layers with and without a window are simulated with heads of one size and number");
}

void read_sinks(ConfigReader& in, ModelSpec& model) {
  const bool of_full = in.flag_or("add_full_attention_sink_bias", false);
  const bool of_windows = in.flag_or("add_swa_attention_sink_bias", false);
  model.attention_sinks = of_full && of_windows;
  model.window_sinks = of_windows && !of_full;
  if (of_full && !of_windows)
    in.leave_out("add_full_attention_sink_bias",
                 "is true without add_swa_attention_sink_bias, which is not simulated", "");
}

}  // namespace

/// Arcee's Trinity: gated attention between norms ahead and behind; layers without a window have no
/// positions.
void read_afmoe(ConfigReader& in, ModelSpec& model) {
  read_llama_without_biases(in, model, "AfmoeForCausalLM");
  model.qk_norm = model.attention_gate = true;
  model.norm_placement = NormPlacement::both;
  model.embedding_scale = in.flag_or("mup_enabled", false);
  const std::int64_t every = in.dimension_or("global_attn_every_n_layers", 4);
  read_window(in, model, in.dimension_or("sliding_window", 1024), every);
  leave_full_layers_unturned(model);
  if (model.window == 0) model.attention_pattern = attention_letter::kWithoutPositions;
  set_experts(in, model, "num_experts", "num_experts_per_tok");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = count_or_none(in, "num_shared_experts") * model.expert_ffn;
  model.dense_layers = count_or_none(in, "num_dense_layers");
  if (model.dense_layers >= model.layers)
    in.fail("num_dense_layers", "leaves no layer experts", "use fewer than num_hidden_layers");
  set_groups(in, model, "num_experts");
  model.router_sigmoid = in.text_or("score_func", "sigmoid") == "sigmoid";
  model.router_bias = true;
  for (const char* within : {"load_balance_coeff", "num_expert_groups", "num_limited_groups",
                             "route_norm", "route_scale", "use_grouped_mm"})
    in.has(within);
}

/// Windows with keys of another number of heads, and sinks, of which the other layers have none;
/// values of another size than queries.
void read_mimo_v2_flash(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.v_head_dim = in.dimension_or("v_head_dim", model.head_dim);
  require_same(in, "swa_num_attention_heads", "num_attention_heads", model.heads);
  require_same(in, "swa_head_dim", "head_dim", model.head_dim);
  require_same(in, "swa_v_head_dim", "v_head_dim", model.v_head_dim);
  require_same(in, "sliding_window_size", "sliding_window", in.dimension("sliding_window"));
  const std::int64_t keys = in.dimension_or("swa_num_key_value_heads", model.kv_heads);
  in.require_divisor("swa_num_key_value_heads", keys, "num_attention_heads", model.heads);
  set_attention_pattern(model, in.dimension("sliding_window"),
                        letters_of_flags(in, model, "hybrid_layer_pattern",
                                         attention_letter::kWindow, attention_letter::kFull));
  if (model.window > 0 && keys != model.kv_heads) model.window_kv_heads = keys;
  read_sinks(in, model);
  if (model.window == 0) model.window_sinks = false;
  read_partial_rotary(in, model, "partial_rotary_factor", 1);
  set_experts(in, model, "n_routed_experts", "num_experts_per_tok");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = count_or_none(in, "n_shared_experts") * model.expert_ffn;
  set_groups(in, model, "n_routed_experts");
  set_expert_layers(in, model,
                    letters_of_flags(in, model, "moe_layer_freq", layer_letter::kExperts,
                                     layer_letter::kFeedForward),
                    "moe_layer_freq");
  model.router_sigmoid = in.text_or("scoring_func", "sigmoid") == "sigmoid";
  model.router_bias = in.text_or("topk_method", "noaux_tc") == "noaux_tc";
  if (in.has("attention_value_scale"))
    in.approximate(in.prefix() +
                   "attention_value_scale: a product over the values of each layer is left out");
  in.ignore("attention_chunk_size", "MiMoV2FlashForCausalLM");
  for (const char* within :
       {"layernorm_epsilon", "swa_rope_theta", "routed_scaling_factor", "norm_topk_prob"})
    in.has(within);
}

namespace {

/// E for the layers that a text such as "4,5,6" numbers, from 0; all but the first without one.
std::string numbered_layers(ConfigReader& in, const ModelSpec& model, const char* key) {
  std::string letters(static_cast<std::size_t>(model.layers), layer_letter::kExperts);
  letters.front() = layer_letter::kFeedForward;
  const std::string listed = in.text_or(key, "");
  if (listed.empty()) return letters;
  letters.assign(letters.size(), layer_letter::kFeedForward);
  std::istringstream numbers(listed);
  for (std::string number; std::getline(numbers, number, ',');) {
    const bool digits = !number.empty() && number.size() < 6 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t layer = digits ? std::stoul(number) : letters.size();
    if (layer < letters.size())
      letters[layer] = layer_letter::kExperts;
    else
      in.fail(key, "has \"" + number + "\"",
              "name layers from 0 to " + std::to_string(model.layers - 1) + " between commas");
  }
  return letters;
}

}  // namespace

/// Queries come from a rank behind a norm, and share few heads of keys and values.
void read_step3(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.kv_heads = in.dimension_or("num_attention_groups", 1);
  in.require_divisor("num_attention_groups", model.kv_heads, "num_attention_heads", model.heads);
  model.q_rank = in.dimension("share_q_dim");
  set_experts(in, model, "moe_num_experts", "moe_top_k");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.shared_ffn = count_or_none(in, "share_expert_dim");
  set_expert_layers(in, model, numbered_layers(in, model, "moe_layers_enum"), "moe_layers_enum");
  in.has("norm_expert_weight");
}

}  // namespace tessera
