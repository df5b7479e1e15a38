#include "workloads/hugging_face.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "workloads/config_reader.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostLayers = 10'000;

void set_heads(ConfigReader& in, ModelSpec& model, const char* heads, const char* hidden) {
  model.heads = model.kv_heads = in.dimension(heads);
  in.require_divisor(heads, model.heads, hidden, model.hidden);
  model.head_dim = std::max<std::int64_t>(1, model.hidden / model.heads);
}

void read_gpt2(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::gpt2;
  model.layers = in.dimension("n_layer", kMostLayers);
  model.hidden = in.dimension("n_embd");
  set_heads(in, model, "n_head", "n_embd");
  model.ffn = in.dimension_or("n_inner", 4 * model.hidden);
  model.vocab = in.dimension("vocab_size");
  model.max_positions = in.dimension("n_positions");
  model.activation = in.activation_or("activation_function", Activation::gelu_new);
  model.hidden_dropout = in.probability_or("resid_pdrop", 0.1);
  model.attention_dropout = in.probability_or("attn_pdrop", 0.1);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
}

void read_opt(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::opt;
  model.layers = in.dimension("num_hidden_layers", kMostLayers);
  model.hidden = in.dimension("hidden_size");
  set_heads(in, model, "num_attention_heads", "hidden_size");
  model.ffn = in.dimension("ffn_dim");
  model.vocab = in.dimension("vocab_size");
  model.max_positions = in.dimension("max_position_embeddings");
  model.activation = in.activation_or("activation_function", Activation::relu);
  model.hidden_dropout = in.probability_or("dropout", 0.1);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  if (in.dimension_or("word_embed_proj_dim", model.hidden) != model.hidden) {
    in.fail("word_embed_proj_dim", "differs from hidden_size",
            "projected embeddings (opt-350m) are not supported");
  }
  if (!in.flag_or("do_layer_norm_before", true)) {
    in.fail("do_layer_norm_before", "is false", "post-norm OPT (opt-350m) is not supported");
  }
}

void read_bert(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::bert;
  model.layers = in.dimension("num_hidden_layers", kMostLayers);
  model.hidden = in.dimension("hidden_size");
  set_heads(in, model, "num_attention_heads", "hidden_size");
  model.ffn = in.dimension("intermediate_size");
  model.vocab = in.dimension("vocab_size");
  model.max_positions = in.dimension("max_position_embeddings");
  model.token_types = in.dimension_or("type_vocab_size", 2);
  model.activation = in.activation_or("hidden_act", Activation::gelu);
  model.hidden_dropout = in.probability_or("hidden_dropout_prob", 0.1);
  model.attention_dropout = in.probability_or("attention_probs_dropout_prob", 0.1);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
}

void read_llama(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.layers = in.dimension("num_hidden_layers", kMostLayers);
  model.hidden = in.dimension("hidden_size");
  set_heads(in, model, "num_attention_heads", "hidden_size");
  model.head_dim = in.dimension_or("head_dim", model.head_dim);
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.ffn = in.dimension("intermediate_size");
  model.vocab = in.dimension("vocab_size");
  model.max_positions = 0;
  model.hidden_dropout = 0;
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  if (in.activation_or("hidden_act", Activation::silu) != Activation::silu) {
    in.fail("hidden_act", "is not silu", "Llama's feed-forward is silu-gated");
  }
  model.activation = Activation::swiglu;
}

void read_mixtral(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.experts = in.dimension("num_local_experts");
  model.experts_per_token = in.dimension("num_experts_per_tok");
}

/// Qwen 2's biases are in its code, not in its file.
void read_qwen2(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qkv_bias = true;
}

void read_qwen3(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qk_norm = true;
}

void read_qwen3_moe(ConfigReader& in, ModelSpec& model) {
  read_qwen3(in, model);
  model.ffn = in.dimension("moe_intermediate_size");
  model.experts = in.dimension("num_experts");
  model.experts_per_token = in.dimension("num_experts_per_tok");
  if (in.dimension_or("decoder_sparse_step", 1) != 1)
    in.fail("decoder_sparse_step", "is not 1",
            "models with experts in some layers are not simulated");
}

void read_switch_transformer(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::switch_transformer;
  model.encoder_layers = in.dimension("num_layers", kMostLayers);
  model.layers = in.dimension_or("num_decoder_layers", model.encoder_layers);
  model.hidden = in.dimension("d_model");
  model.heads = model.kv_heads = in.dimension("num_heads");
  model.head_dim = in.dimension("d_kv");
  model.ffn = in.dimension("d_ff");
  model.vocab = in.dimension("vocab_size");
  model.activation = in.activation_or("dense_act_fn", Activation::relu);
  model.hidden_dropout = model.attention_dropout = in.probability_or("dropout_rate", 0.1);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  model.experts = in.dimension("num_experts");
  model.expert_capacity = in.dimension("expert_capacity");
  const std::int64_t sparse = in.dimension("num_sparse_encoder_layers", kMostLayers);
  model.moe_every = std::max<std::int64_t>(1, model.encoder_layers / sparse);
  const bool same_in_decoder = in.dimension_or("num_sparse_decoder_layers", sparse) == sparse &&
                               model.layers == model.encoder_layers;
  if (!same_in_decoder) {
    in.fail("num_sparse_decoder_layers", "or num_decoder_layers differ from the encoder's",
            "use equal stacks");
  }
}

void read_bloom(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::bloom;
  model.layers = in.dimension(in.name_in_use("n_layer", "num_hidden_layers"), kMostLayers);
  const char* hidden = in.name_in_use("hidden_size", "n_embed");
  model.hidden = in.dimension(hidden);
  set_heads(in, model, in.name_in_use("n_head", "num_attention_heads"), hidden);
  model.ffn = 4 * model.hidden;
  model.vocab = in.dimension("vocab_size");
  model.activation = Activation::gelu_new;
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
}

/// As transformers runs it: ALiBi and no biases whatever the file says, so a file that says
/// otherwise is for llm-foundry's own code.
void read_mpt(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::mpt;
  model.layers = in.dimension("n_layers", kMostLayers);
  model.hidden = in.dimension("d_model");
  set_heads(in, model, "n_heads", "d_model");
  model.ffn = in.dimension_or("expansion_ratio", 4) * model.hidden;
  model.vocab = in.dimension("vocab_size");
  model.activation = Activation::gelu;
  const json attention_object = in.object_or_empty("attn_config");
  ConfigReader attention(attention_object, "");
  model.hidden_dropout = model.attention_dropout = attention.probability_or("attn_pdrop", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  if (!attention.flag_or("alibi", true))
    attention.fail("alibi", "is false", "write a model file of family gpt2, with max_positions");
  if (!in.flag_or("no_bias", true))
    in.fail("no_bias", "is false", "write a model file of family gpt2 or bloom, which have biases");
  in.take_problems(attention, "attn_config");
}

using ReadFamily = void (*)(ConfigReader&, ModelSpec&);
constexpr std::array<std::pair<const char*, ReadFamily>, 12> kFamilies{
    {{"bert", read_bert},
     {"bloom", read_bloom},
     {"gpt2", read_gpt2},
     {"llama", read_llama},
     {"mistral", read_llama},
     {"mixtral", read_mixtral},
     {"mpt", read_mpt},
     {"opt", read_opt},
     {"qwen2", read_qwen2},
     {"qwen3", read_qwen3},
     {"qwen3_moe", read_qwen3_moe},
     {"switch_transformers", read_switch_transformer}}};

ReadFamily family_of(const std::string& model_type, const std::string& where) {
  std::string supported;
  for (const auto& [name, read] : kFamilies) {
    if (model_type == name) return read;
    supported += supported.empty() ? "" : ", ";
    supported += name;
  }
  const std::string what =
      model_type.empty() ? "model_type is missing" : "model_type \"" + model_type + "\" is unknown";
  throw InputError(Problem{where, what, "supported: " + supported});
}

json parsed(const std::string& json_text, const std::string& where) {
  try {
    json object = json::parse(json_text);
    if (object.is_object()) return object;
  } catch (const json::exception& error) {  // a number beyond double is no parse_error
    throw InputError(Problem{where, "is not JSON: " + std::string(error.what()),
                             "give a Hugging Face config.json"});
  }
  throw InputError(Problem{where, "holds no JSON object", "give a Hugging Face config.json"});
}

}  // namespace

ModelSpec read_hugging_face_config(const std::string& json_text, const std::string& where,
                                   std::vector<std::string>* unread) {
  const json object = parsed(json_text, where);
  ConfigReader in(object, where);
  const std::string model_type = in.text_or("model_type", "");
  const ReadFamily read = family_of(model_type, where);
  ModelSpec model;
  model.name = in.text_or("_name_or_path", model_type);
  read(in, model);
  if (unread) *unread = in.unread();
  std::move(in).finish();
  return model;
}

}  // namespace tessera
