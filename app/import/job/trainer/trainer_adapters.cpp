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
constexpr std::array<std::pair<const char*, const char*>, 6> kScalars{
    {{"--lora_alpha", "lora_alpha"},
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
                  const std::string& kind, const std::string& weights)
      : draft_(draft), in_(in), options_(options), kind_(kind), weights_(weights) {
    tree_.kind = YamlNode::Kind::mapping;
    if (options_.framework.empty() && kind != "FSDP") options_.framework = "hf-eager";
  }

  void read() {
    if (const auto rank = in_.integer("--lora_r"))
      put("r", plain_value(std::to_string(*rank)), where("--lora_r"));
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
    if (!given("lora_dropout")) {
      put("lora_dropout", plain_value("0.05"), kDefaults);
      draft_.assume("adapters drop 5 % of their inputs (lora_dropout), TRL's default");
    }
    const bool is_llama = options_.spec->family == ModelFamily::llama;
    if (given("target_modules") || !is_llama) return;
    put("target_modules", list_of_words("q_proj v_proj"), kDefaults);
    draft_.assume(
        "adapters beside q_proj and v_proj, which peft chooses for most models of this "
        "kind: --lora_target_modules names others");
  }

  /// bitsandbytes' weights, or those that peft finds.
  void read_weights() {
    const bool four_bits = in_.flag("--load_in_4bit");
    const std::string type = in_.text("--bnb_4bit_quant_type").value_or("nf4");
    const bool twice = in_.flag("--use_bnb_nested_quant");
    if (!four_bits) return hold_factors();
    if (type != "nf4") draft_.approximate("--bnb_4bit_quant_type " + type + ": counted as nf4");
    draft_.set("training.base_weights", twice ? "nf4_double_quant" : "nf4");
    if (in_.flag("--use_dora"))
      in_.refuse("--use_dora", "beside --load_in_4bit is not simulated", "leave one of them out");
    if (kind_ == "FSDP")
      in_.refuse("--load_in_4bit", "of weights that FSDP divides over ranks is not simulated",
                 "start it without FSDP (DDP, ZeRO 1 or 2)");
    hold_all_in_16_bits();
  }

  /// trl/trainer/utils.py, peft_module_casting_to_bf16, and sft_trainer.py of 2025 (recalled).
  void hold_all_in_16_bits() {
    const std::string mixed = in_.text("mixed_precision").value_or("no");
    if ((mixed != "bf16" && mixed != "fp16") || kind_ == "DEEPSPEED") return;
    for (const char* part : {"parameters", "gradients", "reduce", "optimizer_states"})
      draft_.set(std::string("training.mixed_precision.") + part, mixed);
    draft_.assume("norms, embedding, head and adapters count in " + mixed +
                  " beside weights in 4 bits: TRL casts them so");
  }

  /// FSDP and DeepSpeed hold all weights in one format.
  void hold_factors() {
    if (weights_.empty() || kind_ == "FSDP" || kind_ == "DEEPSPEED") return;
    hold_factors_in_fp32(draft_);
    if (in_.text("mixed_precision").value_or("no") == "no")
      draft_.approximate(
          "products of adapters are in fp32 where neither --bf16 nor --fp16 is given, and count "
          "in 16 bits");
  }

  ScenarioDraft& draft_;
  ForeignFields& in_;
  JobOptions options_;
  std::string kind_;     ///< how accelerate distributes the job
  std::string weights_;  ///< format that they are loaded in; empty: fp32
  YamlNode tree_;
};

}  // namespace

void read_trainer_adapters(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                           const std::string& kind, const std::string& weights) {
  if (options.spec && in.flag("--use_peft"))
    TrainerAdapters(draft, in, options, kind, weights).read();
}

}  // namespace tessera
