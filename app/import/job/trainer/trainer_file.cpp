#include "app/import/job/trainer/trainer_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

/// One of them is enough, and none of the others may be there: axolotl's, LLaMA-Factory's and
/// verl's.
constexpr std::array<std::string_view, 2> kOfTrainer{"model_name_or_path",
                                                     "per_device_train_batch_size"};
constexpr std::array<std::string_view, 5> kOfOthers{"base_model", "finetuning_type", "stage",
                                                    "template", "actor_rollout_ref"};

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

bool holds_trainer_arguments(const YamlNode& tree) {
  const auto has = [&](std::string_view key) { return tree.find(key) != nullptr; };
  return std::ranges::any_of(kOfTrainer, has) && std::ranges::none_of(kOfOthers, has);
}

ForeignFields trainer_arguments(const YamlNode& tree) {
  ForeignFields arguments;
  for (const YamlEntry& entry : tree.entries) {
    const bool holds = entry.value.kind == YamlNode::Kind::mapping;
    if (entry.key == "deepspeed" && holds)
      throw InputError({entry.mark.text(), "deepspeed holds a configuration itself",
                        "write it into a file, and the file's name here"});
    if (!says_nothing(entry.value))
      arguments.add("--" + entry.key, {option_text(entry.value), entry.mark.text()});
  }
  return arguments;
}

}  // namespace tessera
