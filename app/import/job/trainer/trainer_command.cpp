// Commands that start Hugging Face's Trainer, or a program around it.
#include "app/import/job/trainer/trainer_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/launch/job_files.h"
#include "app/import/job/script_environment.h"
#include "app/import/job/trainer/trainer_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void set_entry(YamlNode& tree, const std::string& key, const std::string& text, const Mark& mark) {
  std::erase_if(tree.entries, [&](const YamlEntry& entry) { return entry.key == key; });
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.text = text;
  value.mark = mark;
  tree.entries.push_back({key, mark, std::move(value)});
}

/// "learning_rate=1e-4" behind a file goes over it (LLaMA-Factory).
void add_settings_to(YamlNode& tree, const ShellCommand& command, std::size_t file) {
  const Mark mark = tree.mark;
  for (std::size_t i = file + 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    const std::size_t equals = word.find('=');
    if (word.starts_with("-") || equals == std::string::npos) continue;
    set_entry(tree, word.substr(0, equals), word.substr(equals + 1), mark);
  }
}

}  // namespace

bool has_word(const ShellCommand& command, std::string_view word) {
  return std::ranges::any_of(command.words, [&](const ShellWord& one) { return one.text == word; });
}

ShellCommand without_conda(ShellCommand command) {
  constexpr std::string_view kRunners[] = {"conda", "mamba", "micromamba"};
  constexpr std::string_view kStarts[] = {"python", "python3", "torchrun", "accelerate",
                                          "deepspeed"};
  const auto is_one_of = [](const auto& words) {
    return [&](const ShellWord& word) {
      return std::ranges::find(words, word.text) != std::end(words);
    };
  };
  const auto runner = std::ranges::find_if(command.words, is_one_of(kRunners));
  if (runner == command.words.end()) return command;
  const auto start = std::find_if(runner, command.words.end(), is_one_of(kStarts));
  if (start != command.words.end()) command.words.erase(runner, start);
  return command;
}

bool is_of_trainer(const ShellCommand& command) {
  return std::ranges::any_of(command.words, [](const ShellWord& one) {
    const std::string name = one.text.substr(0, one.text.find('='));
    return name == "--per_device_train_batch_size" || name == "--model_name_or_path";
  });
}

std::optional<YamlNode> arguments_file(const ShellCommand& command, const ShellScript& script,
                                       const std::string& name, const JobOptions& options) {
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& before = command.words[i - 1].text;
    const std::string& file = command.words[i].text;
    const std::string extension = fs::path(file).extension().string();
    const bool is_file = extension == ".json" || extension == ".yaml" || extension == ".yml";
    const bool is_behind = before == "--config" || before == "train" || before.ends_with(".py") ||
                           before == "axolotl.cli.train";
    const auto content =
        is_file && is_behind ? text_of_script(file, script, name, options) : std::nullopt;
    if (!content) continue;
    YamlNode tree = foreign_tree(content->text, content->name);
    if (!holds_trainer_arguments(tree)) continue;
    add_settings_to(tree, command, i);
    return tree;
  }
  return std::nullopt;
}

bool starts_all_gpus(const ShellCommand& command) {
  return has_word(command, "deepspeed") || has_word(command, "llamafactory-cli") ||
         has_word(command, "lmf") || has_word(command, "axolotl");
}

void add_counts(const ShellScript& script, MegatronLaunch& launch) {
  constexpr std::pair<const char*, const char*> kCounts[] = {{"NPROC_PER_NODE", "--nproc_per_node"},
                                                             {"NNODES", "--nnodes"}};
  for (const auto& [variable, option] : kCounts) {
    const std::string count = environment_value(variable, script);
    if (!count.empty() && !launch.launcher.has(option))
      launch.launcher.add(option, {count, launch.where});
  }
  const std::string visible = environment_value("CUDA_VISIBLE_DEVICES", script);
  if (visible.empty() || launch.launcher.has("--nproc_per_node")) return;
  const auto count = 1 + std::ranges::count(visible, ',');
  launch.launcher.add("--nproc_per_node", {std::to_string(count), launch.where});
}

void take_options_of_axolotl(YamlNode& tree, MegatronLaunch& launch) {
  const Mark mark{std::make_shared<Origin>(Origin{launch.where, "", false})};
  for (const auto& [option, value] : launch.arguments.values()) {
    std::string key = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    std::ranges::replace(key, '-', '_');
    const std::string text = value.text.empty() ? "true" : value.text;
    if (key == "num_processes" || key == "num_machines")
      launch.launcher.add("--" + key, value);
    else if (key != "launcher" && key != "config")
      set_entry(tree, key, text, mark);
  }
  launch.arguments = {};
}

bool starts_another(const ShellCommand& command, const std::optional<YamlNode>& file) {
  if (file) return trainer_file_kind(*file) != TrainerFileKind::trainer;
  const bool names_it = std::ranges::any_of(command.words, [](const ShellWord& word) {
    return word.text.substr(0, word.text.find('=')) == "--finetuning_type";
  });
  const bool by_its_program = (has_word(command, "llamafactory-cli") || has_word(command, "lmf")) &&
                              has_word(command, "train");
  return is_of_trainer(command) && (names_it || by_its_program);
}

}  // namespace tessera
