// Dense models of 2024 to 2026: transformers 4.57, models/NAME/modeling_NAME.py, as recalled.
#include <nlohmann/json.hpp>

#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

/// Two linear layers around a squared ReLU, without a gate.
void read_squared_relu(ConfigReader& in, ModelSpec& model) {
  if (in.value("hidden_act") != "relu2")
    in.fail("hidden_act", "is " + ConfigReader::shown(in.value("hidden_act")),
            "this model_type is simulated with relu2");
  model.activation = Activation::relu_squared;
}

/// Dimensions of Llama whose activation another function reads.
void read_without_activation(ConfigReader& in, ModelSpec& model) {
  read_llama_sizes(in, model, "num_hidden_layers");
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.qkv_bias = model.output_bias = in.flag_or("attention_bias", false);
  model.mlp_bias = in.flag_or("mlp_bias", false);
}

}  // namespace

void read_smollm3(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  in.has("pretraining_tp");  // of no product in its code
  read_usual_window(in, model, false);
  read_positions(in, model, 4);
}

void read_seed_oss(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.hidden_dropout = in.probability_or("residual_dropout", 0.1);
  model.attention_dropout = in.probability_or("attention_dropout", 0.1);
  model.qkv_bias = in.flag_or("attention_bias", true);
  model.output_bias = in.flag_or("attention_out_bias", false);
}

/// use_bias is of all linear layers but the head.
void read_ernie4_5(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  model.qkv_bias = model.output_bias = model.mlp_bias = in.flag_or("use_bias", false);
}

/// Norms of heads behind the rotary embedding, which cost the same there.
void read_hunyuan_dense(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qk_norm = in.flag_or("use_qk_norm", true);
  ignore_of_hunyuan(in, "HunYuanDenseV1ForCausalLM");
  if (in.dimension_or("num_experts", 1) > 1)
    in.fail("num_experts", "is more than 1", "models with experts are hunyuan_v1_moe");
  in.has("num_shared_expert");
}

/// GLM-4 of June 2024: biases of queries, keys and values alone.
void read_glm(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.qkv_bias = in.flag_or("attention_bias", false);
  model.output_bias = false;
  read_partial_rotary(in, model, "partial_rotary_factor", 0.5);
}

/// GLM-4 of April 2025 has norms behind both branches as well.
void read_glm4(ConfigReader& in, ModelSpec& model) {
  read_glm(in, model);
  model.norm_placement = NormPlacement::both;
}

namespace {

/// Of a text of L (a window) and G (none) that is repeated; the last layer has none.
std::string letters_of_exaone(ConfigReader& in, const ModelSpec& model) {
  const std::string pattern = in.text_or("sliding_window_pattern", "G");
  if (pattern.find_first_not_of("LG") != std::string::npos)
    in.fail("sliding_window_pattern", "is " + pattern, "use a number, or a text of L and G");
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i)
    letters +=
        repeated_letter(pattern, i) == 'L' ? attention_letter::kWindow : attention_letter::kFull;
  letters.back() = attention_letter::kFull;
  return letters;
}

/// layer_types come first; without them the pattern is a text, or every so many-th layer is full.
void read_exaone_windows(ConfigReader& in, ModelSpec& model) {
  const bool by_text = in.value("sliding_window_pattern").is_string() && !in.has("layer_types");
  if (!in.has("sliding_window")) return;
  const std::int64_t window = in.dimension("sliding_window");
  if (by_text) return set_attention_pattern(model, window, letters_of_exaone(in, model));
  const bool numbered = in.value("sliding_window_pattern").is_number();
  read_window(in, model, window, numbered ? in.dimension("sliding_window_pattern") : 4);
}

}  // namespace

/// Norms behind the branches and over heads; with windows, layers without one have no positions.
void read_exaone4(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.norm_placement = NormPlacement::after;
  model.qk_norm = true;
  read_exaone_windows(in, model);
  leave_full_layers_unturned(model);
}

void read_arcee(ConfigReader& in, ModelSpec& model) {
  read_without_activation(in, model);
  read_squared_relu(in, model);
}

/// Minitron and Nemotron-4: a layer norm whose weight is stored less one.
void read_nemotron(ConfigReader& in, ModelSpec& model) {
  read_without_activation(in, model);
  read_squared_relu(in, model);
  model.norm = NormKind::layer_norm;
  in.has("norm_eps");
  read_partial_rotary(in, model, in.name_in_use("partial_rotary_factor", "rope_percent"), 0.5);
  in.has("rope_percentage");
}

/// Two linear layers around xIELU, whose two numbers each layer trains; norms of heads.
void read_apertus(ConfigReader& in, ModelSpec& model) {
  read_without_activation(in, model);
  if (in.text_or("hidden_act", "xielu") != "xielu")
    in.fail("hidden_act", "is " + ConfigReader::shown(in.value("hidden_act")),
            "this model_type is simulated with xielu");
  model.activation = Activation::xielu;
  model.qk_norm = in.flag_or("qk_norm", true);
  if (in.flag_or("post_norm", false))
    in.leave_out("post_norm", "is true: the simulated norms are ahead of the branches", "");
}

/// Qwen 2 with layers that predict further tokens.
void read_mimo(ConfigReader& in, ModelSpec& model) {
  read_qwen2(in, model);
  read_further_layers(in, model);
  if (in.flag_or("use_mrope", false))
    in.leave_out("use_mrope", "is true: positions of images are not simulated", "");
}

/// Mistral of December 2025.
void read_ministral3(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
}

}  // namespace tessera
