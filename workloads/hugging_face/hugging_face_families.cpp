#include "workloads/hugging_face/hugging_face_families.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/hugging_face/hugging_face_keys.h"
#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostLayers = kMostHuggingFaceLayers;

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
  if ((in.probability_or("embd_pdrop", 0.1) > 0) == (model.hidden_dropout > 0)) return;
  in.leave_out("embd_pdrop", "and resid_pdrop: dropout in one of the two places is not simulated",
               "set both or none");
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

/// BERT's layers; what its pre-training has besides, RoBERTa's has not.
void read_roberta(ConfigReader& in, ModelSpec& model) {
  read_bert(in, model);
  in.approximate(in.prefix() +
                 "model_type: BERT's pooler and its head for the next sentence are simulated "
                 "besides, which RoBERTa has not");
}

void read_mixtral(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.experts = in.dimension("num_local_experts");
  model.experts_per_token = in.dimension("num_experts_per_tok");
  check_experts_per_token(in, model, "num_local_experts", "num_experts_per_tok");
}

void read_qwen3_moe(ConfigReader& in, ModelSpec& model) {
  read_qwen3(in, model);
  const std::int64_t ffn = in.dimension("moe_intermediate_size");
  model.experts = in.dimension("num_experts");
  model.experts_per_token = in.dimension("num_experts_per_tok");
  check_experts_per_token(in, model, "num_experts", "num_experts_per_tok");
  read_sparse_step(in, model);
  if (expert_layers_of(model) == model.layers)
    model.ffn = ffn;
  else
    model.expert_ffn = ffn;
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
  in.has("pretraining_tp");  // of slow_but_exact alone, which is refused
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
  ConfigReader attention = in.inside(attention_object, "attn_config");
  model.hidden_dropout = model.attention_dropout = attention.probability_or("attn_pdrop", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  if (!attention.flag_or("alibi", true))
    attention.fail("alibi", "is false", "write a model file of family gpt2, with max_positions");
  if (!in.flag_or("no_bias", true))
    in.fail("no_bias", "is false", "write a model file of family gpt2 or bloom, which have biases");
  judge_rest(attention);
  in.take_findings(attention);
}

struct NamedReader {
  const char* model_type;
  ReadFamily read;
};

/// Those from qwen2_vl on are the language models of vision-language models.
constexpr std::array kFamilies{NamedReader{"baichuan", read_baichuan},
                               NamedReader{"afmoe", read_afmoe},
                               NamedReader{"apertus", read_apertus},
                               NamedReader{"arcee", read_arcee},
                               NamedReader{"bailing_moe", read_bailing_moe},
                               NamedReader{"bailing_moe_v2", read_bailing_moe},
                               NamedReader{"bamba", read_bamba},
                               NamedReader{"camembert", read_roberta},
                               NamedReader{"chatglm", read_chatglm},
                               NamedReader{"codegen", read_gptj},
                               NamedReader{"dbrx", read_dbrx},
                               NamedReader{"deepseek", read_deepseek_moe},
                               NamedReader{"dots1", read_dots1},
                               NamedReader{"ernie4_5", read_ernie4_5},
                               NamedReader{"ernie4_5_moe", read_ernie4_5_moe},
                               NamedReader{"exaone4", read_exaone4},
                               NamedReader{"glm", read_glm},
                               NamedReader{"glm4", read_glm4},
                               NamedReader{"glm4v_text", read_glm4},
                               NamedReader{"glm4v_moe_text", read_glm4_moe},
                               NamedReader{"granitemoe", read_granite_moe},
                               NamedReader{"granitemoeshared", read_granite_moe},
                               NamedReader{"granitemoehybrid", read_granite_hybrid},
                               NamedReader{"hunyuan_v1_dense", read_hunyuan_dense},
                               NamedReader{"hunyuan_v1_moe", read_hunyuan_moe},
                               NamedReader{"internlm3", read_internlm3},
                               NamedReader{"jamba", read_jamba},
                               NamedReader{"kimi_linear", read_kimi_linear},
                               NamedReader{"lfm2", read_lfm2},
                               NamedReader{"lfm2_moe", read_lfm2_moe},
                               NamedReader{"llama4_text", read_llama4},
                               NamedReader{"mamba2", read_mamba2},
                               NamedReader{"mimo", read_mimo},
                               NamedReader{"mimo_v2_flash", read_mimo_v2_flash},
                               NamedReader{"minimax_m2", read_minimax_m2},
                               NamedReader{"minicpm3", read_minicpm3},
                               NamedReader{"ministral", read_mistral},
                               NamedReader{"ministral3", read_ministral3},
                               NamedReader{"mt5", read_t5},
                               NamedReader{"nemotron", read_nemotron},
                               NamedReader{"nemotron_h", read_nemotron_h},
                               NamedReader{"olmoe", read_olmoe},
                               NamedReader{"phimoe", read_phimoe},
                               NamedReader{"qwen", read_qwen},
                               NamedReader{"qwen3_5", read_qwen3_5},
                               NamedReader{"qwen3_5_text", read_qwen3_5},
                               NamedReader{"qwen3_5_moe", read_qwen3_5_moe},
                               NamedReader{"qwen3_5_moe_text", read_qwen3_5_moe},
                               NamedReader{"qwen3_next", read_qwen3_next},
                               NamedReader{"roberta", read_roberta},
                               NamedReader{"seed_oss", read_seed_oss},
                               NamedReader{"smollm3", read_smollm3},
                               NamedReader{"step3_text", read_step3},
                               NamedReader{"xlm-roberta", read_roberta},
                               NamedReader{"t5", read_t5},
                               NamedReader{"bert", read_bert},
                               NamedReader{"bloom", read_bloom},
                               NamedReader{"cohere", read_cohere},
                               NamedReader{"cohere2", read_cohere2},
                               NamedReader{"deepseek_v2", read_deepseek_v2},
                               NamedReader{"deepseek_v3", read_deepseek_v3},
                               NamedReader{"deepseek_v32", read_deepseek_v32},
                               NamedReader{"glm_moe_dsa", read_deepseek_v32},
                               NamedReader{"exaone", read_exaone},
                               NamedReader{"falcon", read_falcon},
                               NamedReader{"falcon_h1", read_falcon_h1},
                               NamedReader{"gemma", read_gemma},
                               NamedReader{"gemma2", read_gemma2},
                               NamedReader{"gemma3_text", read_gemma3},
                               NamedReader{"glm4_moe", read_glm4_moe},
                               NamedReader{"glm4_moe_lite", read_deepseek_v3},
                               NamedReader{"gpt_neox", read_gpt_neox},
                               NamedReader{"gpt_oss", read_gpt_oss},
                               NamedReader{"gptj", read_gptj},
                               NamedReader{"granite", read_granite},
                               NamedReader{"internlm2", read_internlm2},
                               NamedReader{"kimi_k2", read_deepseek_v3},
                               NamedReader{"minicpm", read_minicpm},
                               NamedReader{"olmo2", read_olmo2},
                               NamedReader{"olmo3", read_olmo3},
                               NamedReader{"phi", read_phi},
                               NamedReader{"phi3", read_phi3},
                               NamedReader{"qwen2_moe", read_qwen2_moe},
                               NamedReader{"stablelm", read_stablelm},
                               NamedReader{"starcoder2", read_starcoder2},
                               NamedReader{"gpt2", read_gpt2},
                               NamedReader{"llama", read_llama_itself},
                               NamedReader{"mistral", read_mistral},
                               NamedReader{"mixtral", read_mixtral},
                               NamedReader{"mpt", read_mpt},
                               NamedReader{"opt", read_opt},
                               NamedReader{"qwen2", read_qwen2},
                               NamedReader{"qwen3", read_qwen3},
                               NamedReader{"qwen3_moe", read_qwen3_moe},
                               NamedReader{"switch_transformers", read_switch_transformer},
                               NamedReader{"qwen2_vl", read_qwen2},
                               NamedReader{"qwen2_vl_text", read_qwen2},
                               NamedReader{"qwen2_5_vl", read_qwen2},
                               NamedReader{"qwen2_5_vl_text", read_qwen2},
                               NamedReader{"qwen3_vl_text", read_qwen3},
                               NamedReader{"qwen3_vl_moe_text", read_qwen3_moe}};

struct Reason {
  const char* why;
  std::string_view model_types;  ///< between spaces
  const char* remedy = "";       ///< beyond the model_types that are read
};

constexpr const char* kEncoder =
    "BERT's layers are simulated: write a model file of family bert with the same sizes";
constexpr const char* kDecoder =
    "the nearest that is simulated is a model file of family gpt2 or llama (docs/frameworks.md)";

constexpr std::array kReasons{
    Reason{"two attentions a layer, and experts that do nothing", " longcat_flash ",
           "the nearest that is simulated is deepseek_v3"},
    Reason{"experts that all tokens share, in code of their own", " aria aria_text ",
           "the nearest that is simulated is deepseek, with n_shared_experts"},
    Reason{"embeddings of each layer, and several streams between layers (AltUp, LAuReL)",
           " gemma3n gemma3n_text ", "the nearest that is simulated is gemma3_text"},
    Reason{"attention in windows between learned positions", " gpt_neo ", kDecoder},
    Reason{"lightning attention (linear attention with a decay for each head)",
           " minimax minimax_m1 minimax_text_01 ",
           "minimax_m2, whose layers all attend, is simulated"},
    Reason{"layers of state spaces or linear attention",
           " mamba falcon_mamba zamba zamba2 recurrent_gemma rwkv rwkv5 rwkv6 rwkv7 plamo2 hymba ",
           "simulated are Mamba-2 (mamba2, and beside attention nemotron_h, bamba, falcon_h1, "
           "granitemoehybrid), Mamba-1 in jamba, and delta nets (qwen3_next, kimi_linear)"},
    Reason{"a dense feed-forward beside the experts of each layer", " arctic ",
           "the nearest that is simulated has shared experts: deepseek, with n_shared_experts"},
    Reason{"experts between norms, with attention that is capped by a tanh", " grok-1 ",
           "write a model file of family llama with experts, norm_placement: both and "
           "attention_softcap: true"},
    Reason{"attention to blocks of tokens, and a feed-forward of its own make", " phi3small ",
           "phi3 (Phi-3 mini and medium) is simulated"},
    Reason{"layers that a search made different", " nemotron-nas deci ",
           "simulated is the model that it was made of: a llama of its sizes"},
    Reason{"norms without weights", " olmo ",
           "olmo2 is simulated; or write a model file of family llama with "
           "norm: layer_norm_without_bias"},
    Reason{"norms or projections that no family has", " gpt_bigcode persimmon ", kDecoder},
    Reason{"cross-attention to images", " mllama mllama_text_model idefics ",
           "llama without the images is simulated"},
    Reason{"an encoder with a decoder, other than T5 and Switch Transformer",
           " umt5 longt5 bart mbart pegasus marian whisper m2m_100 nllb-moe ",
           "t5, mt5 and switch_transformers are simulated"},
    Reason{"an encoder other than BERT",
           " distilbert electra deberta deberta-v2 albert modernbert nomic_bert ", kEncoder},
    Reason{"two towers that are trained against each other",
           " clip clip_text_model siglip siglip2 siglip_text_model ",
           "family vision has image models by their architecture: vit_b_16, vit_l_16"},
    Reason{"an image model: family vision takes it by its architecture, not by a config.json",
           " vit deit swin swinv2 convnext convnextv2 resnet beit dinov2 clip_vision_model "
           "siglip_vision_model ",
           "write model: {architecture: vit_b_16}; tessera explain model.architecture lists them"}};

constexpr std::array<std::pair<std::string_view, const char*>, 48> kArchitectures{
    {{"BaichuanFor", "baichuan"},
     {"BaiChuanFor", "baichuan"},
     {"Cohere2For", "cohere2"},
     {"CohereFor", "cohere"},
     {"DeepseekV2For", "deepseek_v2"},
     {"DeepseekV3For", "deepseek_v3"},
     {"DeepseekV32For", "deepseek_v32"},
     {"GlmMoeDsaFor", "glm_moe_dsa"},
     {"ExaoneFor", "exaone"},
     {"FalconFor", "falcon"},
     {"FalconH1For", "falcon_h1"},
     {"GemmaFor", "gemma"},
     {"Gemma2For", "gemma2"},
     {"Gemma3ForCausalLM", "gemma3_text"},
     {"Glm4MoeFor", "glm4_moe"},
     {"Glm4MoeLiteFor", "glm4_moe_lite"},
     {"GPTNeoXFor", "gpt_neox"},
     {"GptOssFor", "gpt_oss"},
     {"GPTJFor", "gptj"},
     {"GraniteFor", "granite"},
     {"InternLM2For", "internlm2"},
     {"MiniCPMFor", "minicpm"},
     {"Phi3For", "phi3"},
     {"BertFor", "bert"},
     {"BertModel", "bert"},
     {"BloomFor", "bloom"},
     {"GPT2", "gpt2"},
     {"LlamaFor", "llama"},
     {"LLaMAFor", "llama"},
     {"LlamaModel", "llama"},
     {"MistralFor", "mistral"},
     {"MixtralFor", "mixtral"},
     {"MptFor", "mpt"},
     {"MPTFor", "mpt"},
     {"OPTFor", "opt"},
     {"Qwen2ForC", "qwen2"},
     {"Qwen2Model", "qwen2"},
     {"Qwen3ForC", "qwen3"},
     {"Qwen3MoeFor", "qwen3_moe"},
     {"SwitchTransformersFor", "switch_transformers"},
     {"T5For", "t5"},
     {"MT5For", "mt5"},
     {"SmolLM3For", "smollm3"},
     {"Step3TextFor", "step3_text"},
     {"SeedOssFor", "seed_oss"},
     {"Olmo3For", "olmo3"},
     {"NemotronHFor", "nemotron_h"},
     {"GraniteMoeHybridFor", "granitemoehybrid"}}};

}  // namespace

ReadFamily reader_of_model_type(const std::string& model_type) {
  const auto found = std::ranges::find_if(
      kFamilies, [&](const NamedReader& family) { return model_type == family.model_type; });
  return found == kFamilies.end() ? nullptr : found->read;
}

std::string known_model_types() {
  std::set<std::string> sorted;
  for (const NamedReader& family : kFamilies) sorted.insert(family.model_type);
  std::string names;
  for (const std::string& name : sorted) {
    if (name.find("_vl") == std::string::npos) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

NotSimulated why_not_simulated(const std::string& model_type) {
  for (const Reason& reason : kReasons) {
    if (reason.model_types.find(" " + model_type + " ") != std::string_view::npos)
      return {reason.why, reason.remedy};
  }
  return {};
}

std::string model_type_of_architecture(const std::string& architecture) {
  for (const auto& [prefix, model_type] : kArchitectures) {
    if (architecture.starts_with(prefix)) return model_type;
  }
  return "";
}

}  // namespace tessera
