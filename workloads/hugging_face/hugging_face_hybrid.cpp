// Models of Mamba layers and attention layers: transformers 4.57,
// models/{mamba2,granitemoehybrid,bamba,falcon_h1,jamba}, and the code beside the weights of
// Nemotron-H, as recalled.
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

using nlohmann::json;

/// Names of a Mamba-2 mixer's sizes.
struct MambaKeys {
  const char *heads, *head_dim, *state, *groups, *taps, *conv_bias, *projection_bias, *expand,
      *chunk;
};
constexpr MambaKeys kOfNemotron{"mamba_num_heads", "mamba_head_dim", "ssm_state_size",
                                "n_groups",        "conv_kernel",    "use_conv_bias",
                                "mamba_proj_bias", "expand",         "chunk_size"};
constexpr MambaKeys kOfMamba2{"num_heads",     "head_dim", "state_size", "n_groups",  "conv_kernel",
                              "use_conv_bias", "use_bias", "expand",     "chunk_size"};
constexpr MambaKeys kOfBamba{"mamba_n_heads",   "mamba_d_head", "mamba_d_state",
                             "mamba_n_groups",  "mamba_d_conv", "mamba_conv_bias",
                             "mamba_proj_bias", "mamba_expand", "mamba_chunk_size"};

void read_mamba(ConfigReader& in, ModelSpec& model, const MambaKeys& keys) {
  model.mamba_heads = in.dimension(keys.heads);
  model.mamba_head_dim = in.dimension(keys.head_dim);
  model.mamba_state = in.dimension(keys.state);
  model.mamba_groups = in.dimension_or(keys.groups, 1);
  in.require_divisor(keys.groups, model.mamba_groups, keys.heads, model.mamba_heads);
  if (in.dimension_or(keys.taps, 4) != 4)
    in.fail(keys.taps, "is not 4", "convolutions over 4 positions are simulated");
  if (!in.flag_or(keys.conv_bias, true))
    in.leave_out(keys.conv_bias, "is false: the simulated convolution has a bias", "");
  if (in.flag_or(keys.projection_bias, false))
    in.leave_out(keys.projection_bias, "is true: the simulated projections have no biases", "");
  in.has(keys.expand);
  in.has(keys.chunk);
  in.approximate("the kernels of Mamba-2 layers were never measured");
  for (const char* within : {"mamba_hidden_act", "use_mamba_kernels", "time_step_floor",
                             "time_step_limit", "time_step_max", "time_step_min", "time_step_rank",
                             "mamba_dt_limit", "mamba_ssm_cache_dtype"})
    in.has(within);
}

/// A model of the family whose layers all attend: what its file says of Mamba-2 sizes nothing.
void pass_over_mamba(ConfigReader& in, const MambaKeys& keys) {
  for (const char* key : {keys.heads, keys.head_dim, keys.state, keys.groups, keys.taps,
                          keys.conv_bias, keys.projection_bias, keys.expand, keys.chunk})
    in.has(key);
}

void set_pairs(ModelSpec& model, const std::string& mixers, char second) {
  set_layer_pairs(model, mixers, std::string(mixers.size(), second));
}

}  // namespace

void read_nemotron_h(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostHuggingFaceLayers);
  model.layer_pattern = in.text_or("hybrid_override_pattern", "");
  if (model.layer_pattern.find_first_not_of("M*-E") != std::string::npos ||
      static_cast<std::int64_t>(model.layer_pattern.size()) != model.layers)
    in.fail("hybrid_override_pattern",
            "is no text of a letter M, *, - or E for each of num_hidden_layers = " +
                std::to_string(model.layers),
            "check both");
  model.hidden = in.dimension("hidden_size");
  model.heads = in.dimension("num_attention_heads");
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.head_dim = in.dimension_or(in.name_in_use("head_dim", "attention_head_dim"), 128);
  in.has("attention_head_dim");
  model.ffn = in.dimension("intermediate_size");
  model.vocab = in.dimension("vocab_size");
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.attention_pattern = attention_letter::kWithoutPositions;
  model.activation = Activation::relu_squared;
  if (const json& act = in.value("mlp_hidden_act"); !act.is_null() && act != "relu2")
    in.fail("mlp_hidden_act", "is " + ConfigReader::shown(act), "this model_type has relu2");
  if (in.flag_or("use_bias", false))
    in.leave_out("use_bias", "is true: the simulated layers have no biases", "");
  read_mamba(in, model, kOfNemotron);
  for (const char* within : {"num_logits_to_keep", "rescale_prenorm_residual", "residual_in_fp32"})
    in.has(within);
  if (model.layer_pattern.find(layer_letter::kExperts) == std::string::npos) return;
  read_deepseek_experts(in, model);
  if (in.has("moe_shared_expert_intermediate_size"))
    model.shared_ffn = in.dimension("moe_shared_expert_intermediate_size");
  model.router_sigmoid = model.router_bias = true;
}

/// Mamba-2 in every layer, and nothing else. No layer has the heads and the feed-forward that a
/// model needs sizes of.
void read_mamba2(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostHuggingFaceLayers);
  model.layer_pattern.assign(static_cast<std::size_t>(model.layers), layer_letter::kMamba);
  model.hidden = in.dimension("hidden_size");
  model.vocab = in.dimension("vocab_size");
  model.hidden_dropout = model.attention_dropout = 0;
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.activation = Activation::swiglu;
  model.attention_pattern = attention_letter::kWithoutPositions;
  read_mamba(in, model, kOfMamba2);
  const std::int64_t inner = model.mamba_heads * model.mamba_head_dim;
  if (inner != in.dimension_or("expand", 2) * model.hidden)
    in.fail("num_heads", "* head_dim is not expand * hidden_size", "check all four");
  model.heads = model.kv_heads = model.mamba_heads;
  model.head_dim = model.mamba_head_dim;
  model.ffn = inner;
  if (in.activation_or("hidden_act", Activation::silu) != Activation::silu)
    in.fail("hidden_act", "is not silu", "the simulated convolution has silu");
  for (const char* within : {"rescale_prenorm_residual", "residual_in_fp32"}) in.has(within);
  if (!in.flag_or("rms_norm", true))
    in.leave_out("rms_norm", "is false: a norm is simulated behind the scan", "");
}

/// Each layer has a mixer, then a shared feed-forward, beside experts where there are some.
void read_granite_hybrid(ConfigReader& in, ModelSpec& model) {
  read_granite_moe(in, model);
  std::string mixers;
  const json& types = in.value("layer_types");
  if (static_cast<std::int64_t>(types.size()) != model.layers)
    in.fail("layer_types",
            "has " + std::to_string(types.size()) + " entries for " + std::to_string(model.layers) +
                " layers",
            "give one for each");
  for (const json& type : types) {
    if (type != "mamba" && type != "attention")
      in.fail("layer_types", "has " + ConfigReader::shown(type), "known: mamba, attention");
    mixers += type == "attention" ? layer_letter::kAttention : layer_letter::kMamba;
  }
  const bool all_attend = mixers.find(layer_letter::kMamba) == std::string::npos;
  if (!all_attend)
    set_pairs(model, mixers,
              model.experts > 0 ? layer_letter::kExperts : layer_letter::kFeedForward);
  const std::string positions = in.text_or("position_embedding_type", "rope");
  if (positions == "nope")
    model.attention_pattern = attention_letter::kWithoutPositions;
  else if (positions != "rope")
    in.fail("position_embedding_type", "is " + positions, "known: nope, rope");
  in.has("normalization_function");
  if (all_attend) return pass_over_mamba(in, kOfBamba);
  read_mamba(in, model, kOfBamba);
}

void read_bamba(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  std::string mixers(static_cast<std::size_t>(model.layers), layer_letter::kMamba);
  for (const json& number : in.value("attn_layer_indices")) {
    const bool is_layer = number.is_number_integer() && number >= 0 && number < model.layers;
    if (!is_layer) {
      in.fail("attn_layer_indices", "has " + ConfigReader::shown(number),
              "name layers from 0 to " + std::to_string(model.layers - 1));
      continue;
    }
    mixers[number.get<std::size_t>()] = layer_letter::kAttention;
  }
  set_pairs(model, mixers, layer_letter::kFeedForward);
  read_partial_rotary(in, model, "partial_rotary_factor", 0.5);
  for (const char* within : {"attn_rotary_emb", "num_logits_to_keep", "z_loss_coefficient"})
    in.has(within);
  read_mamba(in, model, kOfBamba);
}

/// Every layer has attention and Mamba-2 side by side, then a feed-forward. Numbers that multiply
/// one tensor (muP) are a pass over each branch, the embeddings and the logits.
void read_falcon_h1(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  set_pairs(model, std::string(static_cast<std::size_t>(model.layers), layer_letter::kSideBySide),
            layer_letter::kFeedForward);
  read_mamba(in, model, kOfBamba);
  if (in.dimension_or("mamba_d_ssm", model.mamba_heads * model.mamba_head_dim) !=
      model.mamba_heads * model.mamba_head_dim)
    in.fail("mamba_d_ssm", "is not mamba_n_heads * mamba_d_head", "check all three");
  if (in.flag_or("mamba_rms_norm", false))
    in.leave_out("mamba_rms_norm", "is true: no norm is simulated behind the scan", "");
  if (!in.flag_or("mamba_use_mlp", true))
    in.leave_out("mamba_use_mlp", "is false: the simulated layers have a feed-forward", "");
  if (in.flag_or("projectors_bias", false))
    in.leave_out("projectors_bias", "is true: the simulated projections have no biases", "");
  if (!in.value("attn_layer_indices").is_null())
    in.leave_out("attn_layer_indices", "names layers: all are simulated with attention", "");
  model.embedding_scale = in.has("embedding_multiplier");
  model.logit_scale = in.has("lm_head_multiplier");
  model.residual_scale = true;
  for (const char* within :
       {"attention_in_multiplier", "attention_out_multiplier", "key_multiplier", "mlp_multipliers",
        "ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier", "mamba_norm_before_gate",
        "mlp_expansion_factor", "num_logits_to_keep"})
    in.has(within);
  in.approximate("of the numbers that multiply parts of a layer, one pass a branch is simulated");
}

namespace {

/// `one` for layers i with i % period = offset, else `other`.
std::string every_nth(ConfigReader& in, const ModelSpec& model, const char* period_key,
                      const char* offset_key, std::int64_t usual_offset, std::int64_t usual_period,
                      char one, char other) {
  const std::int64_t period = in.dimension_or(period_key, usual_period);
  const json& given = in.value(offset_key);
  const std::int64_t offset = given.is_null() ? usual_offset
                              : given == 0    ? 0
                                              : in.dimension(offset_key);
  if (offset >= period)
    in.fail(offset_key, "= " + std::to_string(offset) + " is not below " + period_key,
            "check both");
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i) letters += i % period == offset ? one : other;
  return letters;
}

/// Sizes of Mamba-1, whose channels are heads of one number.
void read_scan(ConfigReader& in, ModelSpec& model) {
  model.mamba_heads = in.dimension_or("mamba_expand", 2) * model.hidden;
  model.mamba_head_dim = model.mamba_groups = 1;
  model.mamba_state = in.dimension_or("mamba_d_state", 16);
  const std::int64_t rank = scan_rank_of(model);
  const json& given = in.value("mamba_dt_rank");
  if (!given.is_null() && given != "auto" && in.dimension("mamba_dt_rank") != rank)
    in.fail("mamba_dt_rank", "is not hidden_size / 16 = " + std::to_string(rank),
            "steps that come from as many numbers are simulated");
  if (in.dimension_or("mamba_d_conv", 4) != 4)
    in.fail("mamba_d_conv", "is not 4", "convolutions over 4 positions are simulated");
  if (!in.flag_or("mamba_conv_bias", true))
    in.leave_out("mamba_conv_bias", "is false: the simulated convolution has a bias", "");
  if (in.flag_or("mamba_proj_bias", false))
    in.leave_out("mamba_proj_bias", "is true: the simulated projections have no biases", "");
  if (!in.flag_or("mamba_inner_layernorms", true))
    in.leave_out("mamba_inner_layernorms", "is false: three norms are simulated", "");
  if (!in.flag_or("use_mamba_kernels", true))
    in.leave_out("use_mamba_kernels", "is false: the kernels of mamba_ssm are simulated", "");
  in.approximate("the scan of Mamba-1 layers was never measured");
}

}  // namespace

/// Mamba-1 between layers of attention without positions; behind each a feed-forward or experts.
void read_jamba(ConfigReader& in, ModelSpec& model) {
  read_llama_without_biases(in, model, "JambaForCausalLM");
  read_scan(in, model);
  const std::string mixers = every_nth(in, model, "attn_layer_period", "attn_layer_offset", 4, 8,
                                       layer_letter::kAttention, layer_letter::kScan);
  std::string seconds = every_nth(in, model, "expert_layer_period", "expert_layer_offset", 1, 2,
                                  layer_letter::kExperts, layer_letter::kFeedForward);
  if (in.dimension_or("num_experts", 16) > 1 &&
      seconds.find(layer_letter::kExperts) != std::string::npos)
    set_experts(in, model, "num_experts", "num_experts_per_tok");
  else
    seconds.assign(seconds.size(), layer_letter::kFeedForward);
  in.has("num_experts_per_tok");
  in.has("num_logits_to_keep");
  model.attention_pattern = attention_letter::kWithoutPositions;
  set_layer_pairs(model, mixers, seconds);
  if (in.has("sliding_window"))
    in.leave_out("sliding_window", "is given: no windows are simulated beside Mamba-1", "");
}

}  // namespace tessera
