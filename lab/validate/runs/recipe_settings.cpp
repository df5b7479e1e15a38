#include "lab/validate/runs/recipe_settings.h"

#include <algorithm>
#include <sstream>

#include "app/import/job/pipeline_layout.h"

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
    const PipelineLayout layout = parse_pipeline_layout(row_.text("pp_layout"));
    if (!layout.fault.empty()) return row_.complain("pp_layout", layout.fault.c_str());
    std::string layers;
    for (const int count : layout.layers)
      layers += (layers.empty() ? "" : ", ") + std::to_string(count);
    set("parallelism.layers_per_stage", "[" + layers + "]");
    if (layout.predicts_ahead) set("parallelism.mtp_ahead", "true");
    if (layout.predicts_more == 0) return;
    if (!row_.states("mtp_layers"))
      set("model.mtp_layers", std::to_string(layout.predicts_more));
    else if (row_.size("mtp_layers") != layout.predicts_more)
      row_.complain("pp_layout", "mtp_layers has another number of layers that predict more (m)");
  }

  const TrainingRowReader& row_;
  std::vector<std::string> list_;
};

}  // namespace

std::vector<std::string> recipe_settings(const TrainingRowReader& row) {
  return Recipe(row).settings();
}

}  // namespace tessera
