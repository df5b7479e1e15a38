// Which layers attend to what, by the keys of transformers 4.57: layer_types, sliding_window,
// max_window_layers, no_rope_layers.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

using nlohmann::json;

/// A list of one entry per layer, or nothing.
const json& list_of_layers(ConfigReader& in, const ModelSpec& model, const char* key) {
  static const json nothing;
  const json& list = in.value(key);
  if (!list.is_array() || list.empty()) return nothing;
  if (static_cast<std::int64_t>(list.size()) == model.layers) return list;
  in.fail(key,
          "has " + std::to_string(list.size()) + " entries for " + std::to_string(model.layers) +
              " layers",
          "give one for each");
  return nothing;
}

/// w for windows and chunks, f for all tokens; empty: no list.
std::string letters_of_types(ConfigReader& in, const ModelSpec& model) {
  std::string letters;
  for (const json& type : list_of_layers(in, model, "layer_types")) {
    const bool window = type == "sliding_attention" || type == "chunked_attention";
    if (!window && type != "full_attention" && type != "attention") {
      in.leave_out("layer_types", "has " + ConfigReader::shown(type) + ", which is not simulated",
                   "");
      return "";
    }
    letters += window ? attention_letter::kWindow : attention_letter::kFull;
  }
  return letters;
}

/// n for layers whose entry in `key` is 0; `every`-th ones where there is no list (0: none).
std::string with_positions(ConfigReader& in, const ModelSpec& model, std::string letters,
                           std::int64_t every) {
  const json& turned = list_of_layers(in, model, "no_rope_layers");
  const auto layers = static_cast<std::size_t>(model.layers);
  letters.resize(std::max(letters.size(), layers), attention_letter::kFull);
  for (std::size_t i = 0; i < layers; ++i) {
    const bool without = turned.is_array() && !turned.empty()
                             ? turned[i] == 0
                             : every > 0 && static_cast<std::int64_t>(i + 1) % every == 0;
    if (without) letters[i] = attention_letter::kWithoutPositions;
  }
  return letters;
}

}  // namespace

void read_window(ConfigReader& in, ModelSpec& model, std::int64_t window, std::int64_t pattern) {
  in.has("use_sliding_window");
  in.has("max_window_layers");
  const std::string letters = letters_of_types(in, model);
  if (!letters.empty()) return set_attention_pattern(model, window, letters);
  if (pattern == 1) return;  // all layers see all tokens
  model.window = window;
  model.full_every = std::max<std::int64_t>(pattern, 0);
}

void read_positions(ConfigReader& in, ModelSpec& model, std::int64_t every) {
  const std::int64_t interval = in.dimension_or("no_rope_layer_interval", every);
  std::string letters(static_cast<std::size_t>(model.layers), attention_letter::kFull);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    if (has_window(model, i)) letters[static_cast<std::size_t>(i)] = attention_letter::kWindow;
  }
  set_attention_pattern(model, model.window, with_positions(in, model, letters, interval));
}

void leave_full_layers_unturned(ModelSpec& model) {
  if (model.window == 0) return;
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i)
    letters +=
        has_window(model, i) ? attention_letter::kWindow : attention_letter::kWithoutPositions;
  set_attention_pattern(model, model.window, letters);
}

void read_usual_window(ConfigReader& in, ModelSpec& model, bool by_default) {
  const bool uses = in.flag_or("use_sliding_window", by_default);
  in.has("sliding_window_pattern");
  constexpr std::int64_t kFirstOfQwen = 28;  // of Qwen2Config and its kin, which ask to be used
  std::int64_t first = by_default ? 0 : kFirstOfQwen;
  if (const json& given = in.value("max_window_layers"); !given.is_null())
    first = given == 0 ? 0 : in.dimension("max_window_layers");
  const std::string letters = letters_of_types(in, model);
  const bool sized = in.has("sliding_window");
  const bool named = letters.find(attention_letter::kWindow) != std::string::npos;
  if (named && !uses)
    return in.fail("layer_types", "has layers with a window, and use_sliding_window is not true",
                   "make both agree");
  if (!sized) {
    if (named)
      in.fail("layer_types", "has layers with a window, and there is no sliding_window",
              "give its size");
    return;
  }
  const std::int64_t window = in.dimension("sliding_window");
  if (!letters.empty()) return set_attention_pattern(model, window, letters);
  if (!uses || first >= model.layers) return;
  model.window = window;
  model.full_first = first;
}

}  // namespace tessera
