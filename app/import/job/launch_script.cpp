// Launch scripts of torchtitan, and which other programs scripts start.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/import/job/imported_job.h"
#include "app/import/job/megatron/megatron_launch.h"
#include "app/import/job/toml_fields.h"
#include "app/import/job/torchtitan_keys.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// torchtitan's parsers take both.
constexpr std::array<const char*, 2> kConfigFile{"--job.config_file", "--job.config-file"};

/// Where `file` is, from the script's folder; beside the script where only its name fits.
fs::path found_file(const std::string& file, const ForeignFields::Value& option,
                    const JobOptions& options) {
  const fs::path folder = options.folder.empty() ? fs::path(".") : options.folder;
  for (const fs::path& path : {folder / file, folder / fs::path(file).filename()})
    if (fs::is_regular_file(path)) return path;
  throw InputError({option.where, "names " + file + ", which is not there",
                    "put it beside the script, or import it by itself: import torchtitan " + file});
}

/// "--training.seq_len 4096" over what the file says.
void add_changes(const MegatronLaunch& launch, ForeignFields& fields) {
  for (const auto& [option, value] : launch.arguments.values()) {
    const std::string key = option.substr(2);
    const bool is_file = std::ranges::find(kConfigFile, option) != kConfigFile.end();
    if (!is_file) fields.add(key, {value.text.empty() ? "true" : value.text, value.where});
  }
}

ImportedJob torchtitan_job(MegatronLaunch launch, const ShellScript& script,
                           const std::string& name, JobOptions options) {
  const auto& arguments = launch.arguments.values();
  const auto option =
      std::ranges::find_if(kConfigFile, [&](const char* one) { return launch.arguments.has(one); });
  const ForeignFields::Value& file = arguments.at(*option);
  if (is_unknown(file.text))
    throw InputError({file.where, std::string(*option) + " is " + file.text,
                      hint_for_unknown(file.text, script)});
  if (!launch.problems.empty()) throw InputError(launch.problems);
  const fs::path path = found_file(file.text, file, options);
  ForeignFields fields = toml_fields(read_text_file(path), shown_path(path));
  add_changes(launch, fields);
  const auto other = told_otherwise(launch, script.variables, options.gpus);
  if (options.gpus == 0) options.gpus = gpus_of(launch, script.variables);
  launch.launcher.finish();
  ImportedJob job = import_torchtitan_fields(std::move(fields), name, options);
  if (other) job.assumed.push_back(*other);
  job.by_torchtitan = true;
  return job;
}

/// "--module llama3 --config llama3_8b": the name of a function, where there was a job file before.
bool is_configured_in_python(const ShellCommand& command) {
  return std::ranges::any_of(command.words, [](const ShellWord& word) {
    return word.text == "--config" || word.text.starts_with("--config=");
  });
}

/// "CONFIG_FILE=my.toml NGPU=8 ./run_train.sh": torchtitan's own script, which a job file and the
/// number of GPUs reach as variables.
void refuse_run_train(const ShellScript& script, const std::string& name) {
  const auto variable = [&](const char* of) {
    const auto found = script.variables.find(of);
    return found == script.variables.end() || found->second.empty() ? std::string()
                                                                    : found->second.front();
  };
  for (const ShellCommand& command : script.commands) {
    const auto started = std::ranges::find_if(command.words, [](const ShellWord& word) {
      return fs::path(word.text).filename() == "run_train.sh" ||
             word.text.starts_with("torchtitan.");
    });
    std::string file = variable("CONFIG_FILE"), gpus = variable("NGPU");
    for (const ShellWord& word : command.words) {
      if (word.text.starts_with("CONFIG_FILE=")) file = word.text.substr(12);
      if (word.text.starts_with("NGPU=")) gpus = word.text.substr(5);
    }
    if (started == command.words.end() && !file.ends_with(".toml")) continue;
    if (file.empty() && is_configured_in_python(command))
      throw InputError(
          {name + ":" + std::to_string(command.words.front().line),
           "starts torchtitan with a configuration in Python (--config), which is not read",
           "write its settings into a job file (import torchtitan FILE.toml) or a scenario"});
    throw InputError({name + ":" + std::to_string(command.words.front().line),
                      "starts torchtitan, whose job file a variable names, by a script that is not "
                      "read",
                      "give the job file: import torchtitan " +
                          (file.empty() ? "FILE.toml" : file) + " --gpus " +
                          (gpus.empty() ? "N" : gpus)});
  }
}

/// "accelerate launch --config_file F", "deepspeed train.py --deepspeed F": the training programs'
/// own arguments are not read.
void refuse_others(const ShellScript& script, const std::string& name) {
  for (const ShellCommand& command : script.commands) {
    const std::vector<ShellWord>& words = command.words;
    const auto place = [&](std::string_view word) {
      return std::ranges::find_if(words, [&](const ShellWord& w) { return w.text == word; });
    };
    if (place("--num-layers") != words.end()) continue;
    const bool accelerate = place("accelerate") != words.end() && place("launch") != words.end();
    const auto option = place(accelerate ? "--config_file" : "--deepspeed");
    const bool names_file = option != words.end() && std::next(option) != words.end() &&
                            !std::next(option)->text.starts_with("--");
    if (!accelerate && !names_file) continue;
    const std::string file = names_file ? std::next(option)->text : "its configuration";
    throw InputError({name + ":" + std::to_string(words.front().line),
                      std::string("starts ") + (accelerate ? "accelerate" : "DeepSpeed") +
                          ", and the arguments of its training program are not read",
                      "give " + file +
                          " instead, with --model, --micro-batch, --sequence-length and what else "
                          "the arguments say"});
  }
}

}  // namespace

ImportedJob import_script(const std::string& text, const std::string& name,
                          const JobOptions& options) {
  const ShellScript script = script_of_job(text, name, options);
  auto launch = launch_with({kConfigFile[0], kConfigFile[1]}, text, script, name);
  if (launch) return torchtitan_job(std::move(*launch), script, name, options);
  refuse_run_train(script, name);
  refuse_others(script, name);
  return import_megatron(text, name, options);
}

}  // namespace tessera
