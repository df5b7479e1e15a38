// Launch scripts of torchtitan, and which other programs scripts start.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/import/job/foreign_programs.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/launch/configured_launch.h"
#include "app/import/job/launch/job_files.h"
#include "app/import/job/megatron/megatron_launch.h"
#include "app/import/job/script_environment.h"
#include "app/import/job/toml_fields.h"
#include "app/import/job/torchtitan/torchtitan_keys.h"
#include "app/import/job/trainer/trainer_job.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// torchtitan's parsers take both.
constexpr std::array<const char*, 2> kConfigFile{"--job.config_file", "--job.config-file"};

/// A job file that a launch names.
struct JobFile {
  std::string file;
  std::string where;      ///< of its name
  std::string what;       ///< names it
  std::int64_t gpus = 0;  ///< that a variable starts; 0: the launcher says
  bool is_usual = false;  ///< no variable says how many: its script's own number
};

/// Where it is, from the script's folder; beside the script where only its name fits.
fs::path found_file(const JobFile& job, const JobOptions& options) {
  if (const auto path = file_of_script(job.file, options)) return *path;
  const std::string gpus = job.gpus > 0 ? " --gpus " + std::to_string(job.gpus) : "";
  throw InputError(
      {job.where, job.what + " names " + job.file + ", which is not there",
       "put it beside the script, or import it by itself: import torchtitan " + job.file + gpus});
}

/// "--training.seq-len 4096", "--compile.no-enable" over what the file says (tyro takes both
/// spellings, and "no" for false).
void add_changes(const MegatronLaunch& launch, ForeignFields& fields) {
  for (const auto& [option, value] : launch.arguments.values()) {
    if (std::ranges::find(kConfigFile, option) != kConfigFile.end()) continue;
    std::string key = option.substr(2);
    std::ranges::replace(key, '-', '_');
    const std::size_t last = key.rfind('.') + 1;
    const bool is_off = value.text.empty() && key.compare(last, 3, "no_") == 0;
    if (is_off) key.erase(last, 3);
    const std::string text = is_off ? "false" : value.text.empty() ? "true" : value.text;
    fields.add(key, {text, value.where});
  }
}

ImportedJob torchtitan_job(MegatronLaunch launch, const JobFile& file, const ShellScript& script,
                           const std::string& name, JobOptions options) {
  if (is_unknown(file.file))
    throw InputError(
        {file.where, file.what + " is " + file.file, hint_for_unknown(file.file, script)});
  if (!launch.problems.empty()) throw InputError(launch.problems);
  const fs::path path = found_file(file, options);
  ForeignFields fields = toml_fields(read_text_file(path), shown_path(path));
  add_changes(launch, fields);
  if (file.gpus > 0 && !launch.launcher.has("--nproc_per_node"))
    launch.launcher.add("--nproc_per_node", {std::to_string(file.gpus), file.where});
  const auto other = told_otherwise(launch, script.variables, options.gpus);
  if (options.gpus == 0) {
    options.gpus = gpus_of(launch, script.variables);
    options.job_nodes = nodes_of(launch, script.variables);
  }
  launch.launcher.finish();
  ImportedJob job = import_torchtitan_fields(std::move(fields), name, options);
  if (other) job.assumed.push_back(*other);
  if (file.is_usual && !other)
    job.assumed.push_back(std::to_string(file.gpus) + " GPUs, as run_train.sh has it: no NGPU");
  job.kind = "torchtitan job";
  return job;
}

JobFile named_file(const MegatronLaunch& launch) {
  const auto& arguments = launch.arguments.values();
  const auto option =
      std::ranges::find_if(kConfigFile, [&](const char* one) { return launch.arguments.has(one); });
  const ForeignFields::Value& file = arguments.at(*option);
  return {file.text, file.where, *option, 0, false};
}

/// "--module llama3 --config llama3_8b": the name of a function, where there was a job file before.
bool is_configured_in_python(const ShellCommand& command) {
  return std::ranges::any_of(command.words, [](const ShellWord& word) {
    return word.text == "--config" || word.text.starts_with("--config=");
  });
}

/// What "CONFIG_FILE=my.toml NGPU=8 ./run_train.sh" hands to torchtitan's own script.
JobFile file_of_variables(const ShellScript& script, const ShellCommand& command,
                          const std::string& name) {
  const auto variable = [&](const std::string& of) {
    for (const ShellWord& word : command.words)
      if (word.text.starts_with(of + "=")) return word.text.substr(of.size() + 1);
    const auto found = script.variables.find(of);
    const bool is_set = found != script.variables.end() && !found->second.empty();
    return is_set ? found->second.front() : std::string();
  };
  constexpr std::int64_t kGpusOfRunTrain = 8;  // NGPU=${NGPU:-"8"}
  const std::string gpus = variable("NGPU");
  const bool is_count =
      !gpus.empty() && gpus.size() < 6 && gpus.find_first_not_of("0123456789") == std::string::npos;
  return {variable("CONFIG_FILE"), name + ":" + std::to_string(command.words.front().line),
          "CONFIG_FILE", is_count ? std::stoll(gpus) : kGpusOfRunTrain, !is_count};
}

/// The first command that runs torchtitan by its script or its module, with a job file in a
/// variable.
std::optional<ImportedJob> torchtitan_by_variables(const std::string& text,
                                                   const ShellScript& script,
                                                   const std::string& name,
                                                   const JobOptions& options) {
  for (const ShellCommand& command : script.commands) {
    const JobFile file = file_of_variables(script, command, name);
    const auto names = [&](const auto& test) { return std::ranges::any_of(command.words, test); };
    const bool runs = names([](const ShellWord& word) {
      return fs::path(word.text).filename() == "run_train.sh" ||
             word.text.starts_with("torchtitan.");
    });
    if (!runs && !file.file.ends_with(".toml")) continue;
    if (file.file.empty() && is_configured_in_python(command))
      throw InputError(
          {file.where,
           "starts torchtitan with a configuration in Python (--config), which is not read",
           "write its settings into a job file (import torchtitan FILE.toml) or a scenario"});
    if (!runs || file.file.empty())
      throw InputError({file.where,
                        "starts torchtitan, whose job file a variable names, by a script that is "
                        "not read",
                        "give the job file: import torchtitan " +
                            (file.file.empty() ? "FILE.toml" : file.file) + " --gpus " +
                            std::to_string(file.gpus)});
    return torchtitan_job(launch_of_command(command, text, script, name), file, script, name,
                          options);
  }
  return std::nullopt;
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

/// Of torchtitan or the Trainer; nothing where the script starts neither.
std::optional<ImportedJob> job_of_another(const std::string& text, const ShellScript& script,
                                          const std::string& name, const JobOptions& options) {
  auto launch = launch_with({kConfigFile[0], kConfigFile[1]}, text, script, name);
  if (launch) {
    const JobFile file = named_file(*launch);
    return torchtitan_job(std::move(*launch), file, script, name, options);
  }
  if (auto job = torchtitan_by_variables(text, script, name, options)) return job;
  const bool is_megatron = std::ranges::any_of(script.commands, [](const ShellCommand& command) {
    return std::ranges::any_of(command.words,
                               [](const ShellWord& word) { return word.text == "--num-layers"; });
  });
  if (is_megatron) return std::nullopt;
  if (auto job = configured_job(text, script, name, options)) return job;
  if (auto job = trainer_job(text, script, name, options, true)) return job;
  if (auto foreign = problem_of_foreign_program(script, name)) throw InputError({*foreign});
  return trainer_job(text, script, name, options, false);
}

}  // namespace

ImportedJob import_script(const std::string& text, const std::string& name,
                          const JobOptions& given) {
  const ShellScript script = script_of_job(text, name, given);
  JobOptions options = given;
  LeftOutVariables variables = left_out_variables(script);
  options.left_out = std::move(variables.of_time);
  options.left_aside = std::move(variables.of_memory);
  auto job = job_of_another(text, script, name, options);
  if (!job) {
    refuse_others(script, name);
    return import_megatron(text, name, options);
  }
  const std::string other_gpu = gpu_not_taken(text, script, name, options);
  if (!other_gpu.empty()) job->assumed.push_back(other_gpu);
  return std::move(*job);
}

}  // namespace tessera
