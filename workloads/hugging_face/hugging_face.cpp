#include "workloads/hugging_face/hugging_face.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "hw/units/input_error.h"
#include "workloads/hugging_face/config_reader.h"
#include "workloads/hugging_face/hugging_face_families.h"
#include "workloads/hugging_face/hugging_face_keys.h"
#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/hugging_face/json_text.h"

namespace tessera {
namespace {

using nlohmann::json;

json parsed(const std::string& json_text, const std::string& where) {
  try {
    json object = json::parse(with_quoted_specials(json_text));
    if (object.is_object()) return object;
  } catch (const json::exception& error) {  // a number beyond double is no parse_error
    throw InputError(Problem{where, "is not JSON: " + std::string(error.what()),
                             "give a Hugging Face config.json"});
  }
  throw InputError(Problem{where, "holds no JSON object", "give a Hugging Face config.json"});
}

std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The first of `architectures`.
std::string architecture_in(const json& object) {
  const auto list = object.find("architectures");
  const bool named =
      list != object.end() && list->is_array() && !list->empty() && list->front().is_string();
  return named ? list->front().get<std::string>() : "";
}

std::string model_type_in(const json& object) {
  const std::string given = text_in(object, "model_type");
  return given.empty() ? model_type_of_architecture(architecture_in(object)) : given;
}

/// Of diffusers' files, which have a class in place of a model_type.
bool is_diffusion_transformer(const json& object) {
  const std::string name = text_in(object, "_class_name");
  return name == "DiTTransformer2DModel" || name == "Transformer2DModel";
}

ReadFamily family_of(const json& object, const ConfigPlaces& places, const std::string& prefix) {
  const std::string model_type = model_type_in(object);
  if (model_type.empty() && is_diffusion_transformer(object)) return read_dit;
  if (const ReadFamily read = reader_of_model_type(model_type)) return read;
  const auto [why, remedy] = why_not_simulated(model_type);
  const std::string architecture = architecture_in(object);
  const std::string what =
      !why.empty() ? "\"" + model_type + "\" is not simulated: " + why
      : !model_type.empty()
          ? "\"" + model_type + "\" is unknown"
          : "is missing" + (architecture.empty()
                                ? ""
                                : ", and architectures = " + architecture + " is unknown");
  throw InputError(Problem{places.of(prefix + "model_type"), prefix + "model_type " + what,
                           remedy.empty() ? "supported: " + known_model_types() +
                                                "; a model file says others (docs/frameworks.md)"
                                          : remedy});
}

/// The key of the language model within a vision-language model; empty where there is none.
std::string key_of_language_model(const json& object) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const auto found = object.find(key);
    if (found != object.end() && found->is_object()) return key;
  }
  return "";
}

/// A model_type that is known not to be simulated, whatever lies within.
void refuse_whole(const json& object, const ConfigPlaces& places) {
  if (!why_not_simulated(model_type_in(object)).why.empty()) family_of(object, places, "");
}

/// The head that is simulated is a language model's.
void judge_head(ConfigReader& in, const std::string& architecture) {
  static constexpr std::array<std::string_view, 6> kLanguageModels{
      "ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "ForConditionalGeneration",
      "ChatGLMModel"};
  const bool is_one = architecture.empty() || std::ranges::any_of(kLanguageModels, [&](auto end) {
                        return architecture.ends_with(end);
                      });
  if (is_one) return;
  if (architecture.ends_with("EncoderModel"))
    return in.leave_out("architectures",
                        "has " + architecture + ": an encoder without its decoder is not simulated",
                        "name the model of both");
  if (architecture.ends_with("Model"))
    return in.approximate(in.prefix() + "architectures: " + architecture +
                          " has no head; a language model's is simulated behind it");
  in.leave_out("architectures",
               "has " + architecture + ": its head is not simulated, but a language model's",
               "name the language model");
}

/// Reads the model of one object: the file, or the language model in it.
void read_object(ConfigReader& in, const json& object, const ConfigPlaces& places,
                 HuggingFaceModel& out) {
  const std::string model_type = model_type_in(object);
  family_of(object, places, in.prefix())(in, out.model);
  in.has("model_type");
  judge_head(in, architecture_in(object));
  const char* kLongest[] = {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
                            "model_max_length"};
  for (const char* key : kLongest) {
    constexpr std::int64_t kMostTokens = 1'000'000'000;
    if (in.has(key)) out.longest = in.dimension(key, kMostTokens);
  }
  constexpr std::int64_t kOfNoPosition = 2;  // rows of RoBERTa's table
  if (model_type.ends_with("roberta") && out.longest > kOfNoPosition) out.longest -= kOfNoPosition;
  const bool without = out.model.window == 0 && out.model.attention_pattern.empty() &&
                       out.model.layer_pattern.empty();
  if (without && out.model.family == ModelFamily::llama) {  // else a family's own
    ModelSpec windowed = out.model;
    read_usual_window(in, windowed, !model_type.starts_with("qwen"));
    if (model_type != "llama") out.model = windowed;  // whose code has no windows
  }
  out.checkpoints = in.flag_or("gradient_checkpointing", false);
}

/// Dimensions that transformers leaves out of a text_config, where they are its defaults.
json with_defaults(json text) {
  static const json kDefaults = {{"llama",
                                  {{"hidden_size", 4096},
                                   {"intermediate_size", 11008},
                                   {"num_hidden_layers", 32},
                                   {"num_attention_heads", 32},
                                   {"vocab_size", 32000}}},
                                 {"mistral",
                                  {{"hidden_size", 4096},
                                   {"intermediate_size", 14336},
                                   {"num_hidden_layers", 32},
                                   {"num_attention_heads", 32},
                                   {"num_key_value_heads", 8},
                                   {"vocab_size", 32000}}},
                                 {"gemma3_text",
                                  {{"hidden_size", 2304},
                                   {"intermediate_size", 9216},
                                   {"num_hidden_layers", 26},
                                   {"num_attention_heads", 8},
                                   {"num_key_value_heads", 4},
                                   {"head_dim", 256},
                                   {"vocab_size", 262208}}},
                                 {"qwen2",
                                  {{"hidden_size", 4096},
                                   {"intermediate_size", 22016},
                                   {"num_hidden_layers", 32},
                                   {"num_attention_heads", 32},
                                   {"num_key_value_heads", 32},
                                   {"vocab_size", 151936}}}};
  const auto defaults = kDefaults.find(model_type_in(text));
  if (defaults == kDefaults.end()) return text;
  for (const auto& [key, value] : defaults->items()) {
    if (!text.contains(key)) text[key] = value;
  }
  return text;
}

void say_towers(ConfigReader& in, const json& object, const std::string& language) {
  for (const auto& [key, value] : object.items()) {
    if (!key.ends_with("_config") || key == language || !value.is_object()) continue;
    if (key == "quantization_config" || key == "generation_config") continue;
    const std::string name = key.substr(0, key.size() - std::string("_config").size());
    in.approximate(name + " tower not simulated (" + key + "): the language model alone");
  }
}

void append(std::vector<std::string>& to, const std::vector<std::string>& lines) {
  to.insert(to.end(), lines.begin(), lines.end());
}

/// The language model within a vision-language model.
void read_text_config(ConfigReader& in, const json& object, const std::string& key,
                      const ConfigPlaces& places, HuggingFaceModel& out) {
  json text = with_defaults(in.object_or_empty(key.c_str()));
  const bool ties = object.contains("tie_word_embeddings") && !text.contains("tie_word_embeddings");
  if (ties) text["tie_word_embeddings"] = object.at("tie_word_embeddings");
  ConfigReader inner = in.inside(text, key);
  read_object(inner, text, places, out);
  append(out.harmless, judge_rest(inner));
  in.take_findings(inner);
}

}  // namespace

HuggingFaceModel read_hugging_face_config(const std::string& json_text, const std::string& where,
                                          bool lenient) {
  const json object = parsed(json_text, where);
  const ConfigPlaces places{where, lines_of_keys(json_text)};
  ConfigReader in(object, places, "", lenient);
  HuggingFaceModel out;
  const std::string language = key_of_language_model(object);
  const bool nested = !language.empty();
  if (nested) {
    refuse_whole(object, places);
    read_text_config(in, object, language, places, out);
  } else {
    read_object(in, object, places, out);
  }
  const bool has_tower = nested || object.contains("vision_config");
  if (has_tower) say_towers(in, object, language);
  const bool is_dit = out.model.family == ModelFamily::vision;
  out.model.name = in.text_or("_name_or_path", is_dit ? "dit" : model_type_in(object));
  append(out.harmless, judge_rest(in, has_tower));
  append(out.harmless, in.ignored());
  out.approximations = in.approximations();
  std::move(in).finish();
  return out;
}

}  // namespace tessera
