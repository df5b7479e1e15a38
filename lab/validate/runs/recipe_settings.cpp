#include "lab/validate/runs/recipe_settings.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace tessera {
namespace {

bool given(const TrainingRowReader& row, const char* column) {
  return row.states(column) && row.text(column) != "0" && row.text(column) != "none";
}

/// "a b" or "a;b" -> "[a, b]".
std::string list_of(std::string words) {
  std::ranges::replace(words, ';', ' ');
  std::ranges::replace(words, ',', ' ');
  std::istringstream stream(words);
  std::string list;
  for (std::string word; stream >> word;) list += (list.empty() ? "" : ", ") + word;
  return "[" + list + "]";
}

class Recipe {
 public:
  explicit Recipe(const TrainingRowReader& row) : row_(row) {}

  std::vector<std::string> settings() && {
    add_recomputation();
    add_adapters();
    add_graphs();
    add_attention();
    if (given(row_, "pp_layout")) add_layout();
    return std::move(list_);
  }

 private:
  void set(const std::string& path, const std::string& value) {
    list_.push_back(path + "=" + value);
  }

  void add_recomputation() {
    const std::string modules = row_.text("recompute_modules");
    if (!modules.empty() && modules != "core_attn")
      set("training.recompute_modules", list_of(modules));
  }

  /// A fine-tuning row that does not say its rank would be taken for training of all weights.
  void add_adapters() {
    if (row_.text("kind") == "lora" && row_.size("lora_rank") <= 0)
      row_.complain("kind", "lora is not simulated without lora_rank: give it");
  }

  /// Parts of layers; whole ones and whole steps are the column's own.
  void add_graphs() {
    std::string scope = row_.text("cuda_graph_scope");
    const std::string kind = row_.text("cuda_graph");
    if (scope.empty() && kind.find(' ') != std::string::npos) scope = kind;
    if (scope.empty() || scope == "none" || scope == "full_iteration") return;
    std::string modules;
    for (const auto& [word, module] :
         {std::pair{"attn", "attn"}, std::pair{"attention", "attn"}, std::pair{"mamba", "mamba"},
          std::pair{"mlp", "mlp"}, std::pair{"moe_router", "moe_router"},
          std::pair{"moe_preprocess", "moe_preprocess"}})
      if (scope.find(word) != std::string::npos) modules += std::string(module) + " ";
    if (modules.empty()) return row_.complain("cuda_graph_scope", "names no module of a layer");
    set("training.framework.cuda_graphs", "layers");
    set("training.framework.graph_modules", list_of(modules));
  }

  /// GPT-OSS: sinks, windows on every second layer, biases.
  void add_attention() {
    if (row_.text("attention").find("sink") != std::string::npos)
      set("model.attention_sinks", "true");
    if (row_.text("activation").find("biases") != std::string::npos)
      for (const char* field : {"qkv_bias", "output_bias", "expert_bias"})
        set(std::string("model.") + field, "true");
    const std::string window = row_.text("window");
    if (!given(row_, "window")) return;
    set("model.window", window.substr(0, window.find(' ')));
    if (window.find("every second layer") != std::string::npos) set("model.full_every", "2");
  }

  void add_layout() {
    const std::string layers = layers_of_letters(row_.text("pp_layout"));
    if (layers.empty()) return row_.complain("pp_layout", "write E, t, m, L, |, (...) and *n");
    set("parallelism.layers_per_stage", layers);
  }

  const TrainingRowReader& row_;
  std::vector<std::string> list_;
};

/// "(tt|)*2t*3" -> "tt|tt|ttt"; stops at what it cannot read.
std::string expanded(const std::string& text, std::size_t& at) {
  std::string all;
  while (at < text.size() && text[at] != ')') {
    std::string piece(1, text[at]);
    if (text[at] == '(') piece = expanded(text, ++at);
    ++at;
    std::size_t count = 1;
    if (at < text.size() && text[at] == '*') {
      count = 0;
      for (++at; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at)
        count = 10 * count + static_cast<std::size_t>(text[at] - '0');
    }
    constexpr std::size_t kMost = 10000;
    for (std::size_t i = 0; i < std::min(count, kMost); ++i) all += piece;
  }
  return all;
}

}  // namespace

std::string layers_of_letters(const std::string& letters) {
  std::size_t at = 0;
  const std::string all = expanded(letters, at);
  if (at < letters.size() || all.find_first_not_of("EtmL|, ") != std::string::npos) return {};
  std::string list;
  int layers = 0;
  for (const char letter : all + "|") {
    if (letter == 't') ++layers;
    if (letter != '|') continue;
    list += (list.empty() ? "" : ", ") + std::to_string(layers);
    layers = 0;
  }
  return "[" + list + "]";
}

std::vector<std::string> recipe_settings(const TrainingRowReader& row) {
  return Recipe(row).settings();
}

}  // namespace tessera
