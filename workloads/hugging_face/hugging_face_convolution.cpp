// Models of short convolutions between attention layers: transformers 4.57, models/{lfm2,lfm2_moe},
// as recalled.
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

using nlohmann::json;

/// layer_types, or the numbers of those that attend.
std::string lfm2_mixers(ConfigReader& in, const ModelSpec& model) {
  std::string mixers(static_cast<std::size_t>(model.layers), layer_letter::kShortConvolution);
  const json& types = in.value("layer_types");
  const json& attending = in.value("full_attn_idxs");
  if (!types.is_array()) {
    if (!attending.is_array()) in.fail("layer_types", "is missing", "add it, or full_attn_idxs");
    for (const json& number : attending) {
      const bool is_layer = number.is_number_integer() && number >= 0 && number < model.layers;
      if (is_layer)
        mixers[number.get<std::size_t>()] = layer_letter::kAttention;
      else
        in.fail("full_attn_idxs", "has " + ConfigReader::shown(number),
                "name layers from 0 to " + std::to_string(model.layers - 1));
    }
    return mixers;
  }
  if (static_cast<std::int64_t>(types.size()) != model.layers) {
    in.fail("layer_types",
            "has " + std::to_string(types.size()) + " entries for " + std::to_string(model.layers) +
                " layers",
            "give one for each");
    return mixers;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "conv" && types[i] != "full_attention")
      in.fail("layer_types", "has " + ConfigReader::shown(types[i]), "known: conv, full_attention");
    if (types[i] == "full_attention") mixers[i] = layer_letter::kAttention;
  }
  return mixers;
}

/// What both say. Queries and keys have norms; gates and convolutions no biases.
void read_lfm2_model(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostHuggingFaceLayers);
  model.hidden = in.dimension("hidden_size");
  set_heads(in, model, in.name_in_use("num_attention_heads", "num_heads"), "hidden_size");
  model.head_dim = in.dimension_or("head_dim", model.head_dim);
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.vocab = in.dimension("vocab_size");
  model.tied_embeddings = in.flag_or(in.name_in_use("tie_embedding", "tie_word_embeddings"), true);
  model.hidden_dropout = model.attention_dropout = 0;
  model.qk_norm = true;
  model.activation = Activation::swiglu;
  if (in.dimension_or("conv_L_cache", 3) != 3)
    in.fail("conv_L_cache", "is not 3", "convolutions over 3 positions are simulated");
  if (in.flag_or("conv_bias", false))
    in.leave_out("conv_bias", "is true: the simulated convolution and projections have none", "");
  for (const char* same : {"block_dim", "conv_dim", "conv_dim_out"}) {
    if (in.dimension_or(same, model.hidden) != model.hidden)
      in.fail(same, "differs from hidden_size", "use the same number");
  }
  for (const char* within :
       {"num_heads", "num_attention_heads", "tie_word_embeddings", "block_norm_eps", "theta",
        "block_mlp_init_scale", "block_out_init_scale", "block_use_xavier_init",
        "conv_use_xavier_init", "use_pos_enc"})
    in.has(within);
  in.approximate("the kernels of short convolutions were never measured");
}

/// `letters` of feed-forwards behind the mixers, one for each layer.
void set_halves(ModelSpec& model, const std::string& mixers, const std::string& letters) {
  for (std::size_t i = 0; i < mixers.size(); ++i) (model.layer_pattern += mixers[i]) += letters[i];
  model.layers = static_cast<std::int64_t>(model.layer_pattern.size());
}

}  // namespace

/// The feed-forward is two thirds of the size that the file gives, times a factor, up to a
/// multiple, unless it says not to.
void read_lfm2(ConfigReader& in, ModelSpec& model) {
  read_lfm2_model(in, model);
  model.ffn = in.dimension(in.name_in_use("intermediate_size", "block_ff_dim"));
  in.has("block_ff_dim");
  const std::int64_t multiple = in.dimension_or("block_multiple_of", 256);
  const json& factor = in.value("block_ffn_dim_multiplier");
  if (!in.flag_or("block_use_swiglu", true))
    in.leave_out("block_use_swiglu", "is false: the simulated feed-forward is silu-gated", "");
  if (in.flag_or("block_auto_adjust_ff_dim", true)) {
    const double scaled =
        static_cast<double>(2 * model.ffn / 3) * (factor.is_number() ? factor.get<double>() : 1.0);
    model.ffn = (static_cast<std::int64_t>(scaled) + multiple - 1) / multiple * multiple;
  }
  const std::string mixers = lfm2_mixers(in, model);
  set_halves(model, mixers, std::string(mixers.size(), layer_letter::kFeedForward));
}

/// Sigmoid scores with a correction, no shared experts.
void read_lfm2_moe(ConfigReader& in, ModelSpec& model) {
  read_lfm2_model(in, model);
  model.ffn = in.dimension("intermediate_size");
  model.experts = in.dimension("num_experts");
  model.experts_per_token = in.dimension("num_experts_per_tok");
  check_experts_per_token(in, model, "num_experts", "num_experts_per_tok");
  model.expert_ffn = in.dimension("moe_intermediate_size");
  model.router_sigmoid = true;
  model.router_bias = in.flag_or("use_expert_bias", true);
  in.has("routed_scaling_factor");
  const std::int64_t dense = count_or_none(in, "num_dense_layers");
  if (dense >= model.layers)
    in.fail("num_dense_layers", "leaves no layer experts", "use fewer than num_hidden_layers");
  const std::string mixers = lfm2_mixers(in, model);
  std::string letters(mixers.size(), layer_letter::kExperts);
  for (std::size_t i = 0; i < letters.size() && static_cast<std::int64_t>(i) < dense; ++i)
    letters[i] = layer_letter::kFeedForward;
  set_halves(model, mixers, letters);
}

}  // namespace tessera
