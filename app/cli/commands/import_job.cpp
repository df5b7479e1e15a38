// tessera import megatron | deepspeed | accelerate | torchtitan | nanotron | llm-foundry |
// huggingface: jobs of other programs as scenarios.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/import/job/imported_job.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"
#include "predictor/gpu/gpu_support.h"
#include "sim/config/files/text_file.h"
#include "sim/config/files/yaml_text.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"

namespace tessera {
namespace {

using JobImporter = std::function<ImportedJob(const std::string& file, const JobOptions&)>;
using TextImporter = ImportedJob (*)(const std::string&, const std::string&, const JobOptions&);

struct ImportJobCommand {
  JobImporter importer;
  std::string file;
  JobOptions options;
  std::vector<std::string> definitions;
  std::string output;
};

/// An importer of a text as one of a file.
JobImporter of_file(TextImporter importer) {
  return [importer](const std::string& file, const JobOptions& options) {
    return importer(read_text_file(file), shown_path(file), options);
  };
}

/// An importer of a text as one of a file; scripts (.sh, .slurm, .sbatch) are followed.
JobImporter or_script(TextImporter importer) {
  return [importer](const std::string& file, const JobOptions& options) {
    const std::string extension = std::filesystem::path(file).extension();
    const bool is_script = extension == ".sh" || extension == ".slurm" || extension == ".sbatch";
    return (is_script ? import_script : importer)(read_text_file(file), shown_path(file), options);
  };
}

void define(const std::string& definition, JobOptions& options) {
  const auto equals = definition.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError({"--define " + definition, "has no value", "write NAME=VALUE"});
  options.variables[definition.substr(0, equals)] = definition.substr(equals + 1);
}

/// One line, whatever the file's values hold.
std::string comment(const std::string& text) {
  std::string line = "# " + text;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return line + "\n";
}

/// The scenario that `yaml` will be in `command`'s output. Throws InputError with what keeps it
/// from being one.
Scenario scenario_in(const std::string& yaml, const ImportJobCommand& command) {
  const std::string file = shown_path(command.file);
  const auto origin = std::make_shared<Origin>(
      Origin{file, std::filesystem::path(command.output).parent_path(), false});
  try {
    return ScenarioSource(parse_yaml(yaml, origin), file, shipped_catalog()).with({});
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      problem.where = file + ", as a scenario";
      if (problem.hint.find("cluster.node_count") != std::string::npos)
        problem.hint += " (--nodes)";
    }
    throw InputError(std::move(problems));
  }
}

/// "model x: 8.03 billion parameters (8030261248)".
std::string model_line(const ModelSpec& model) {
  const std::int64_t count = parameter_count(model);
  const bool is_large = count >= 1'000'000'000;
  return "model " + model.name + ": " +
         formatted("%.2f %sillion", static_cast<double>(count) / (is_large ? 1e9 : 1e6),
                   is_large ? "b" : "m") +
         " parameters (" + std::to_string(count) + ")";
}

void run_import_job(ImportJobCommand& command) {
  if (command.options.nodes > 0 && command.options.cluster.empty())
    throw InputError({"--nodes", "has no --cluster beside it",
                      "name the cluster; without one, DGX H100 are assumed for the job's GPUs"});
  for (const std::string& definition : command.definitions) define(definition, command.options);
  if (!command.options.model.empty()) {
    command.options.model = model_or_config(command.options.model);
    command.options =
        with_spec(command.options, load_model(command.options.model, shipped_catalog()));
  }
  if (!command.options.cluster.empty()) {
    const ClusterSpec cluster = load_cluster(command.options.cluster, shipped_catalog());
    command.options.precision = name_of(usual_precision(cluster.node.gpu));
    const std::int64_t nodes =
        command.options.nodes > 0 ? command.options.nodes : cluster.node_count;
    command.options.cluster_gpus = nodes * cluster.node.gpu_count;
    command.options.node_gpus = cluster.node.gpu_count;
  }
  const std::filesystem::path folder = std::filesystem::path(command.file).parent_path();
  command.options.folder = folder.empty() ? "." : folder;
  const ImportedJob job = command.importer(command.file, command.options);
  const std::string body = to_yaml(job.scenario);
  const std::string model = model_line(scenario_in(body, command).model);
  std::string yaml = comment("Made by tessera import from " +
                             std::filesystem::path(command.file).filename().string() + ".");
  yaml += comment(model);
  for (const std::string& line : job.approximate) yaml += comment("approximate: " + line);
  for (const std::string& line : job.assumed) yaml += comment("assumed: " + line);
  for (const std::string& line : job.ignored) yaml += comment("ignored: " + line);
  for (const std::string& line : job.approximate) spdlog::warn("approximate: {}", line);
  spdlog::info("{} assumed, {} ignored, {} approximate: comments at the top list them",
               job.assumed.size(), job.ignored.size(), job.approximate.size());
  spdlog::info("{}", model);
  yaml += body;
  if (command.output.empty()) return print(yaml);
  replace_file(command.output, yaml);
}

void add_job_importer(CLI::App& import, const std::string& name, const std::string& what,
                      JobImporter importer, bool names_model) {
  auto options = std::make_shared<ImportJobCommand>();
  options->importer = std::move(importer);
  JobOptions& job = options->options;
  CLI::App* command = import.add_subcommand(name, what);
  command->add_option("FILE", options->file)->required();
  if (!names_model)
    command->add_option("--model", job.model, "id of tessera list models, a file, or config.json")
        ->type_name(kModelId);
  command->add_option("--cluster", job.cluster, "id of tessera list clusters, or a file")
      ->type_name(kClusterId);
  command->add_option("--nodes", job.nodes, "of the cluster that --cluster names")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--gpus", job.gpus, "GPUs of the job")->check(CLI::Range(1, 1'000'000));
  command->add_option("--framework", job.framework, "id of tessera list frameworks, or a file");
  const auto size = CLI::Range(std::int64_t{1}, std::int64_t{100'000'000});
  command->add_option("--sequence-length", job.sequence_length, "tokens per sequence")->check(size);
  command->add_option("--global-batch", job.global_batch, "sequences per step")->check(size);
  command->add_option("--micro-batch", job.micro_batch, "sequences per micro-batch")->check(size);
  command->add_flag("--lenient", job.lenient,
                    "leave out what the scenario cannot say; its results say approximate");
  command->add_option("-o,--output,--out", options->output, "write here instead of to stdout");
  if (name == "huggingface")
    command->add_option("--adapter", job.adapter, "adapter_config.json of peft: LoRA or DoRA");
  if (name != "huggingface") {
    command
        ->add_option("--define", options->definitions,
                     "NAME=VALUE of a shell variable, whatever the script sets; repeatable")
        ->allow_extra_args(false);
    command->add_option("--args", job.arguments, "\"...\": the script's arguments, $1 and on");
  }
  if (name == "megatron")
    command->add_option("--vocab", job.vocabulary, "tokens of the vocabulary, ahead of padding")
        ->check(size);
  command->callback([options] { run_import_job(*options); });
}

}  // namespace

void add_import_job_commands(CLI::App& import) {
  add_job_importer(import, "megatron", "a launch script or argument list of Megatron-LM",
                   of_file(import_megatron), true);
  add_job_importer(
      import, "deepspeed",
      "DeepSpeed's ds_config.json, or a script of Hugging Face's Trainer that names one",
      or_script(import_deepspeed), false);
  add_job_importer(import, "accelerate",
                   "what accelerate config wrote, or a script that starts Hugging Face's Trainer",
                   or_script(import_accelerate), false);
  add_job_importer(
      import, "torchtitan", "a job file of torchtitan (TOML), or a script that names one",
      [](const std::string& file, const JobOptions& options) {
        const bool is_job = std::filesystem::path(file).extension() == ".toml";
        const std::string text = read_text_file(file);
        return is_job ? import_torchtitan(text, shown_path(file), options)
                      : import_script(text, shown_path(file), options);
      },
      false);
  add_job_importer(import, "nanotron", "nanotron's file (YAML), or a script that names one",
                   or_script(import_nanotron), true);
  add_job_importer(import, "llm-foundry",
                   "llm-foundry's training file (YAML), or a script that names one",
                   or_script(import_foundry), false);
  add_job_importer(
      import, "huggingface", "a model's config.json",
      [](const std::string& file, const JobOptions& options) {
        return import_hugging_face(file, options);
      },
      true);
}

}  // namespace tessera
