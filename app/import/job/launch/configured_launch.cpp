// Scripts that start a program with a file of its own: nanotron, llm-foundry.
#include "app/import/job/launch/configured_launch.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/foundry/foundry_job.h"
#include "app/import/job/launch/job_files.h"
#include "app/import/job/megatron/megatron_launch.h"
#include "app/import/job/nanotron/nanotron_job.h"
#include "app/import/job/script_environment.h"

namespace tessera {
namespace {

/// A program by the name of what is started, and the files that it reads.
struct ConfiguredProgram {
  std::string_view program, kind;
  bool keeps_empty;  ///< of its file, as fields_of() has it
  bool (*holds)(const YamlNode& tree);
  ImportedJob (*importer)(ForeignFields, const std::string&, const JobOptions&);
};
constexpr std::array<ConfiguredProgram, 2> kPrograms{
    {{"run_train.py", "nanotron job", false, holds_nanotron_job, import_nanotron_fields},
     {"train.py", "llm-foundry job", true, holds_foundry_job, import_foundry_fields}}};

bool is_yaml(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml");
}

/// The file of "run_train.py --config-file F" and "train.py F"; empty: there is none.
std::string file_behind(const ShellCommand& command, std::string_view program) {
  const auto begin = std::ranges::find_if(command.words, [&](const ShellWord& word) {
    return std::filesystem::path(word.text).filename() == program;
  });
  for (auto word = begin; word != command.words.end(); ++word) {
    constexpr std::string_view kOption = "--config-file=";
    const bool joined = word->text.starts_with(kOption);
    const std::string file = joined ? word->text.substr(kOption.size()) : word->text;
    if (is_yaml(file)) return file;
  }
  return "";
}

/// composer -n 8 train.py; its -n is another than srun's.
std::int64_t processes_of_composer(const ShellCommand& command) {
  const auto begin = std::ranges::find(command.words, "composer", &ShellWord::text);
  for (auto word = begin; word != command.words.end() && !word->text.ends_with(".py"); ++word) {
    const bool counts = word->text == "-n" || word->text == "--nproc";
    if (!counts || word + 1 == command.words.end()) continue;
    const std::string& count = (word + 1)->text;
    const bool is_count = count.size() < 6 && !count.empty() &&
                          count.find_first_not_of("0123456789") == std::string::npos;
    if (is_count) return std::stoll(count);
  }
  return 0;
}

/// "optimizer.lr=1e-4" behind the file, and options that the program may have.
void add_settings(const ShellCommand& command, const MegatronLaunch& launch,
                  const std::string& file, const std::string& name, ForeignFields& fields) {
  for (const auto& [option, value] : launch.arguments.values())
    if (option != "--config-file") fields.add(option, value);
  const auto at = std::ranges::find(command.words, file, &ShellWord::text);
  for (auto word = at; word != command.words.end(); ++word) {
    const std::size_t equals = word->text.find('=');
    if (word == at || word->text.starts_with("-") || equals == std::string::npos) continue;
    fields.add(word->text.substr(0, equals),
               {word->text.substr(equals + 1), name + ":" + std::to_string(word->line)});
  }
}

/// Variables that a job reads beside its file.
void add_environment(const ShellScript& script, const std::string& where, ForeignFields& fields) {
  const std::string queues = environment_value(kConnections, script);
  if (!queues.empty()) fields.add(kConnections, {queues, where});
}

struct Started {
  const ShellCommand& command;
  const ConfiguredProgram& program;
  std::string file;
};

ImportedJob read_job(const Started& started, ForeignFields fields, const std::string& text,
                     const ShellScript& script, const std::string& name, JobOptions options) {
  MegatronLaunch launch = launch_of_command(started.command, text, script, name);
  if (!launch.problems.empty()) throw InputError(launch.problems);
  add_settings(started.command, launch, started.file, name, fields);
  if (started.program.kind == "nanotron job") add_environment(script, launch.where, fields);
  const std::int64_t composers = processes_of_composer(started.command);
  if (composers > 0) launch.launcher = {};
  if (composers > 0)
    launch.launcher.add("--nproc_per_node", {std::to_string(composers), launch.where});
  const auto other = told_otherwise(launch, script.variables, options.gpus);
  if (options.gpus == 0) {
    options.gpus = gpus_of(launch, script.variables);
    options.job_nodes = nodes_of(launch, script.variables);
  }
  launch.launcher.finish();
  ImportedJob job = started.program.importer(std::move(fields), name, options);
  if (other) job.assumed.push_back(*other);
  job.kind = started.program.kind;
  return job;
}

}  // namespace

std::optional<ImportedJob> configured_job(const std::string& text, const ShellScript& script,
                                          const std::string& name, const JobOptions& options) {
  for (const ShellCommand& command : script.commands)
    for (const ConfiguredProgram& program : kPrograms) {
      const std::string file = file_behind(command, program.program);
      const auto content = text_of_script(file, script, name, options);
      if (!content) continue;
      const YamlNode tree = foreign_tree(content->text, content->name);
      if (program.holds(tree))
        return read_job({command, program, file}, fields_of(tree, program.keeps_empty), text,
                        script, name, options);
    }
  return std::nullopt;
}

}  // namespace tessera
