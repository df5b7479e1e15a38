#include "app/import/job/trainer/trainer_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

/// One of them is enough, and none of the others may be there: verl's.
constexpr std::array<std::string_view, 2> kOfTrainer{"model_name_or_path",
                                                     "per_device_train_batch_size"};
constexpr std::array<std::string_view, 1> kOfOthers{"actor_rollout_ref"};

/// Beside one of the Trainer's.
constexpr std::array<std::string_view, 3> kOfLlamaFactory{"finetuning_type", "stage", "template"};
/// By itself.
constexpr std::string_view kOfAxolotl = "base_model";

bool has_any(const YamlNode& tree, std::span<const std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return tree.find(key); });
}

bool says_nothing(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::null) return true;
  if (value.kind != YamlNode::Kind::scalar || value.quoted) return false;
  const std::string text = lower_case(value.text);
  return text.empty() || text == "~" || text == "null" || text == "none";
}

/// As it may stand in YAML, in one line.
std::string flow_text(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::scalar)
    return value.quoted ? "\"" + value.text + "\"" : value.text;
  std::string text;
  for (const YamlNode& item : value.items) text += (text.empty() ? "" : ", ") + flow_text(item);
  for (const YamlEntry& entry : value.entries)
    text += (text.empty() ? "\"" : ", \"") + entry.key + "\": " + flow_text(entry.value);
  return value.kind == YamlNode::Kind::sequence ? "[" + text + "]" : "{" + text + "}";
}

/// As it stands behind an option: the words of a list one behind the other.
std::string option_text(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::scalar) return value.text;
  if (value.kind == YamlNode::Kind::mapping) return flow_text(value);
  std::string text;
  for (const YamlNode& item : value.items) text += (text.empty() ? "" : " ") + option_text(item);
  return text;
}

}  // namespace

TrainerFileKind trainer_file_kind(const YamlNode& tree) {
  if (has_any(tree, kOfOthers)) return TrainerFileKind::none;
  if (tree.find(kOfAxolotl)) return TrainerFileKind::axolotl;
  if (!has_any(tree, kOfTrainer)) return TrainerFileKind::none;
  return has_any(tree, kOfLlamaFactory) ? TrainerFileKind::llama_factory : TrainerFileKind::trainer;
}

bool holds_trainer_arguments(const YamlNode& tree) {
  return trainer_file_kind(tree) != TrainerFileKind::none;
}

TrainerArguments trainer_arguments(const YamlNode& tree) {
  const TrainerFileKind kind = trainer_file_kind(tree);
  const std::string prefix = kind == TrainerFileKind::trainer ? "--" : "";
  ForeignFields fields;
  for (const YamlEntry& entry : tree.entries) {
    const bool holds = entry.value.kind == YamlNode::Kind::mapping;
    if (entry.key == "deepspeed" && holds)
      throw InputError({entry.mark.text(), "deepspeed holds a configuration itself",
                        "write it into a file, and the file's name here"});
    if (!says_nothing(entry.value))
      fields.add(prefix + entry.key, {option_text(entry.value), entry.mark.text()});
  }
  if (kind == TrainerFileKind::llama_factory) return llama_factory_arguments(std::move(fields));
  if (kind == TrainerFileKind::axolotl) return axolotl_arguments(std::move(fields));
  TrainerArguments arguments;
  arguments.fields = std::move(fields);
  return arguments;
}

}  // namespace tessera
