#include "app/import/job/trainer/trainer_adapters.h"

#include <array>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "app/import/job/peft_adapter.h"
#include "hw/units/lower_case.h"
#include "workloads/model_spec.h"

namespace tessera {
namespace {

/// Of TRL's command line, and of peft's file.
constexpr std::array<std::pair<const char*, const char*>, 7> kScalars{
    {{"--lora_r", "r"},
     {"--lora_alpha", "lora_alpha"},
     {"--lora_dropout", "lora_dropout"},
     {"--lora_task_type", "task_type"},
     {"--lora_bias", "bias"},
     {"--use_rslora", "use_rslora"},
     {"--use_dora", "use_dora"}}};
constexpr std::array<std::pair<const char*, const char*>, 3> kLists{
    {{"--lora_target_modules", "target_modules"},
     {"--lora_modules_to_save", "modules_to_save"},
     {"--lora_target_parameters", "target_parameters"}}};

constexpr const char* kDefaults = "TRL's defaults";

YamlNode plain_value(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

/// The words of a list; one word alone is a name as well.
YamlNode list_of_words(const std::string& text) {
  if (text == "all-linear") return plain_value(text);
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  std::istringstream words(text);
  for (std::string word; words >> word;) list.items.push_back(plain_value(word));
  return list;
}

class TrainerAdapters {
 public:
  TrainerAdapters(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                  const std::string& kind)
      : draft_(draft), in_(in), options_(options) {
    tree_.kind = YamlNode::Kind::mapping;
    if (options_.framework.empty() && kind != "FSDP") options_.framework = "hf-eager";
  }

  void read() {
    for (const auto& [option, key] : kScalars)
      if (const auto value = said(option)) put(key, plain_value(*value), where(option));
    for (const auto& [option, key] : kLists)
      if (const auto value = said(option)) put(key, list_of_words(*value), where(option));
    fill();
    set_peft_adapter(draft_, *options_.spec, std::move(tree_), options_);
    read_weights();
  }

 private:
  /// Of a switch alone: "true".
  std::optional<std::string> said(const char* option) {
    if (!in_.has(option)) return std::nullopt;
    const std::string word = in_.word(option).value_or("");
    if (lower_case(word) == "none" || lower_case(word) == "null") return std::nullopt;
    return word.empty() ? "true" : word;
  }
  std::string where(const char* option) const { return in_.values().at(option).where; }

  void put(const char* key, YamlNode value, const std::string& where) {
    const Mark mark{std::make_shared<Origin>(Origin{where, "", false})};
    value.mark = mark;
    tree_.entries.push_back({key, mark, std::move(value)});
  }
  bool given(const char* key) const { return tree_.find(key) != nullptr; }

  /// What TRL has where its options say nothing.
  void fill() {
    if (!given("r")) {
      put("r", plain_value("16"), kDefaults);
      draft_.assume("adapters of rank 16, TRL's default");
    }
    if (!given("lora_dropout"))
      draft_.approximate(
          "adapter: lora_dropout is 0.05, TRL's default, and drops inputs of "
          "adapters, which is not simulated");
    const bool is_llama = options_.spec->family == ModelFamily::llama;
    if (given("target_modules") || !is_llama) return;
    put("target_modules", list_of_words("q_proj v_proj"), kDefaults);
    draft_.assume(
        "adapters beside q_proj and v_proj, which peft chooses for most models of this "
        "kind: --lora_target_modules names others");
  }

  void read_weights() {
    const bool four_bits = in_.flag("--load_in_4bit");
    const std::string kind = in_.text("--bnb_4bit_quant_type").value_or("nf4");
    const bool twice = in_.flag("--use_bnb_nested_quant");
    if (!four_bits) return;
    if (kind != "nf4") draft_.approximate("--bnb_4bit_quant_type " + kind + ": counted as nf4");
    draft_.set("training.base_weights", twice ? "nf4_double_quant" : "nf4");
  }

  ScenarioDraft& draft_;
  ForeignFields& in_;
  JobOptions options_;
  YamlNode tree_;
};

}  // namespace

void read_trainer_adapters(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                           const std::string& kind) {
  if (options.spec && in.flag("--use_peft")) TrainerAdapters(draft, in, options, kind).read();
}

}  // namespace tessera
