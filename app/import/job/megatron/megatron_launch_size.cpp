// How many GPUs a launch script uses.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <sstream>

#include "app/import/job/megatron/megatron_arguments.h"
#include "app/import/job/megatron/megatron_launch.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

constexpr std::int64_t kMost = 1'000'000;

/// A whole number of up to 6 digits, or 0.
std::int64_t number_in(const std::string& text) {
  const bool is_number = !text.empty() && text.size() <= 6 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoll(text) : 0;
}

std::int64_t variable(const ShellVariables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() || found->second.size() != 1 ? 0
                                                               : number_in(found->second.front());
}

/// The count of the first of `names` that is there; its problem where it is none.
std::optional<std::int64_t> count_of(ForeignFields& fields,
                                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!fields.has(name)) continue;
    const auto text = fields.text(name);
    if (!text) continue;
    if (const std::int64_t count = number_in(*text)) return count;
    const bool range = text->find(':') != std::string::npos || *text == "gpu";
    fields.refuse(name, "is " + *text,
                  range || !is_unknown(*text) ? "give the number by --gpus of the import"
                                              : "add --define for it, or --gpus of the import");
    return 0;
  }
  return std::nullopt;
}

/// "gpu:8", "gpu:a100:8", "a100:8", "8".
std::int64_t gpus_in(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  return number_in(text.substr(colon == std::string::npos ? 0 : colon + 1));
}

std::int64_t slurm_gpus_per_node(ForeignFields& fields) {
  for (const char* name : {"--gpus-per-node", "--gres"}) {
    const auto text = fields.text(name);
    if (text && gpus_in(*text) > 0) return gpus_in(*text);
  }
  const std::int64_t tasks = count_of(fields, {"--ntasks-per-node"}).value_or(0);
  const std::int64_t of_a_task = gpus_in(fields.text("--gpus-per-task").value_or(""));
  return of_a_task > 0 ? of_a_task * std::max<std::int64_t>(tasks, 1) : tasks;
}

/// "--nodes=16 --exclusive -t 1:00": a line may hold several.
void add_directives(const std::string& line, const std::string& where, ForeignFields& fields) {
  std::istringstream words(line);
  std::string option, value;
  const auto add = [&] {
    if (option == "-N") option = "--nodes";
    if (option == "-n") option = "--ntasks";
    if (option == "-G") option = "--gpus";
    if (!option.empty()) fields.add(option, {value, where});
  };
  for (std::string word; words >> word;) {
    if (!word.starts_with("-")) {
      value += (value.empty() ? "" : " ") + word;
      continue;
    }
    add();
    const bool is_short = word.size() > 1 && word[1] != '-';
    const std::size_t split = is_short ? 2 : std::min(word.find('='), word.size());
    option = word.substr(0, split);
    value = word.substr(std::min(split, word.size()));
    if (value.starts_with("=")) value.erase(0, 1);
  }
  add();
}

}  // namespace

ForeignFields slurm_directives(const std::string& text, const std::string& name) {
  ForeignFields fields;
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string directive = text.substr(at, end - at);
    at = end + 1;
    if (!directive.starts_with("#SBATCH")) continue;
    directive.erase(0, 7);
    directive.erase(std::min(directive.find(" #"), directive.size()));
    add_directives(directive, name + ":" + std::to_string(line), fields);
  }
  return fields;
}

ShellVariables slurm_variables(const std::string& text, const std::string& name) {
  ForeignFields fields = slurm_directives(text, name);
  ShellVariables variables;
  const auto set = [&](std::int64_t value, std::initializer_list<const char*> names) {
    for (const char* one : names) {
      if (value > 0) variables[one] = {std::to_string(value)};
    }
  };
  const auto count = [&](const char* option) {
    return number_in(fields.text(option).value_or(""));
  };
  const std::int64_t nodes = count("--nodes");
  const std::int64_t tasks_per_node = count("--ntasks-per-node");
  const std::int64_t tasks = count("--ntasks") > 0 ? count("--ntasks") : nodes * tasks_per_node;
  const std::int64_t gpus = slurm_gpus_per_node(fields);
  set(nodes, {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  set(tasks_per_node, {"SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  set(tasks, {"SLURM_NTASKS", "SLURM_NPROCS"});
  set(gpus, {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"});
  return variables;
}

namespace {

/// "0,1,2,3": CUDA_VISIBLE_DEVICES.
std::int64_t visible_gpus(const ShellVariables& variables) {
  const auto found = variables.find("CUDA_VISIBLE_DEVICES");
  if (found == variables.end() || found->second.size() != 1 || is_unknown(found->second.front()))
    return 0;
  const std::string& list = found->second.front();
  return list.empty() ? 0 : 1 + std::ranges::count(list, ',');
}

/// Processes that a launcher starts on each node. torchrun's "gpu" and "auto" are one for each
/// GPU.
std::optional<std::int64_t> processes_per_node(ForeignFields& fields,
                                               const ShellVariables& variables) {
  for (const char* name : {"--nproc_per_node", "--nproc-per-node"}) {
    const std::string count = fields.word(name).value_or("");
    if (count != "gpu" && count != "auto") continue;
    const std::int64_t visible = visible_gpus(variables);
    const std::int64_t gpus = visible > 0 ? visible : variable(variables, "SLURM_GPUS_ON_NODE");
    if (gpus == 0) fields.refuse(name, "is " + count, "give the number by --gpus of the import");
    return gpus;
  }
  return count_of(fields, {"--nproc_per_node", "--nproc-per-node", "--num_gpus", "--num-gpus"});
}

/// DeepSpeed's "--include localhost:0,1,2,3" or "a:0,1@b:0,1"; 0 where a host has no list.
std::int64_t included_gpus(ForeignFields& fields) {
  std::istringstream hosts(fields.text("--include").value_or(""));
  std::int64_t gpus = 0;
  for (std::string host; std::getline(hosts, host, '@');) {
    const std::size_t colon = host.find(':');
    if (colon == std::string::npos || is_unknown(host)) return 0;
    gpus += 1 + std::count(host.begin() + static_cast<std::ptrdiff_t>(colon), host.end(), ',');
  }
  return gpus;
}

}  // namespace

namespace {

/// "a100" of "gpu:a100:4" or "a100:2"; "" of a count.
std::string kind_in(const std::string& asked) {
  std::string kind = lower_case(asked.substr(0, asked.find(' ')));
  if (kind.starts_with("gpu:")) kind.erase(0, 4);
  kind.erase(std::min(kind.find(':'), kind.size()));
  return kind.find_first_not_of("0123456789") == std::string::npos ? "" : kind;
}

/// The first GPU among the words of a constraint: "a100" of "ib&(a100|h100)".
std::string gpu_among(const std::string& constraint) {
  constexpr auto kGpus = std::to_array<std::string_view>(
      {"p100",  "v100",  "t4",    "a10",   "a10g",  "a30",    "a40",    "a100",  "l4",
       "l40",   "l40s",  "h20",   "h100",  "h200",  "gh200",  "b100",   "b200",  "b300",
       "gb200", "gb300", "mi100", "mi210", "mi250", "mi250x", "mi300a", "mi300x"});
  std::string word;
  for (const char c : lower_case(constraint) + " ") {
    const bool goes_on = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!goes_on && std::ranges::find(kGpus, word) != kGpus.end()) return word;
    word = goes_on ? word + c : "";
  }
  return "";
}

/// What sbatch's lines and the commands of Slurm ask for, the latter over the former.
ForeignFields asked_of_slurm(const std::string& text, const ShellScript& script,
                             const std::string& name) {
  ForeignFields fields = slurm_directives(text, name);
  for (const ShellCommand& command : script.commands) {
    const auto slurm = std::ranges::find_if(command.words, [](const ShellWord& word) {
      return word.text == "srun" || word.text == "sbatch" || word.text == "salloc";
    });
    std::string line;
    for (auto word = slurm; word != command.words.end(); ++word) line += word->text + " ";
    if (!line.empty()) add_directives(line.substr(line.find(' ') + 1), name, fields);
  }
  return fields;
}

}  // namespace

std::string gpu_not_taken(const std::string& text, const ShellScript& script,
                          const std::string& name, const JobOptions& options) {
  if (!options.cluster.empty()) return "";
  ForeignFields fields = asked_of_slurm(text, script, name);
  std::string kind;
  for (const char* option : {"--gres", "--gpus-per-node", "--gpus", "--gpus-per-task"})
    if (kind.empty()) kind = kind_in(fields.text(option).value_or(""));
  const std::string constraint =
      fields.text("--constraint").value_or(fields.text("-C").value_or(""));
  if (kind.empty() || kind == "gpu") kind = gpu_among(constraint);
  if (kind.empty() || kind.find("h100") != std::string::npos) return "";
  return "H100 in place of the " + kind + " that Slurm is asked for: --cluster names another";
}

std::int64_t nodes_of(MegatronLaunch launch, const ShellVariables& variables) {
  const auto told =
      count_of(launch.launcher, {"--nnodes", "--num_nodes", "--num-nodes", "--nodes", "-N"});
  for (const char* name : {"NNODES", "NUM_NODES", "SLURM_NNODES"})
    if (const std::int64_t nodes = told.value_or(variable(variables, name)); nodes > 0)
      return nodes;
  return 0;
}

std::int64_t gpus_of(MegatronLaunch& launch, const ShellVariables& variables) {
  ForeignFields& fields = launch.launcher;
  const auto within = [](std::int64_t size) { return std::min(size, kMost); };
  if (const std::int64_t included = included_gpus(fields)) return within(included);
  const auto per_node = processes_per_node(fields, variables);
  const auto nodes = count_of(fields, {"--nnodes", "--num_nodes", "--num-nodes", "--nodes", "-N"});
  const auto all = count_of(fields, {"--ntasks", "-n", "-np", "--np"});
  const std::int64_t slurm_nodes = variable(variables, "SLURM_NNODES");
  const std::int64_t slurm_gpus = variable(variables, "SLURM_GPUS_ON_NODE");
  if (per_node) {
    const bool by_hosts = !nodes && fields.has("--hostfile");
    const std::int64_t known =
        by_hosts ? std::max<std::int64_t>(1, variable(variables, "NNODES")) : nodes.value_or(1);
    return within(*per_node) * within(known);
  }
  if (all) return within(*all);
  if (nodes) {
    const std::int64_t told = slurm_gpus_per_node(fields);
    return within(*nodes) * within(told > 0 ? told : slurm_gpus);
  }
  if (const std::int64_t world = variable(variables, "WORLD_SIZE")) return world;
  for (const char* name : {"GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS"}) {
    if (const std::int64_t gpus = variable(variables, name)) {
      const std::int64_t count = variable(variables, "NNODES");
      return gpus * std::max<std::int64_t>(1, count > 0 ? count : variable(variables, "NUM_NODES"));
    }
  }
  if (const std::int64_t tasks = variable(variables, "SLURM_NTASKS"); tasks > slurm_nodes)
    return tasks;
  return slurm_nodes * slurm_gpus;
}

std::optional<std::string> told_otherwise(MegatronLaunch launch, const ShellVariables& variables,
                                          std::int64_t gpus) {
  const std::int64_t started = gpus > 0 ? gpus_of(launch, variables) : 0;
  if (started == 0 || started == gpus) return std::nullopt;
  return std::to_string(gpus) + " GPUs, as --gpus says: " + launch.where + " starts " +
         std::to_string(started);
}

}  // namespace tessera
