#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "app/import/shell/shell_words.h"

namespace tessera {

/// One command that starts a training, taken apart.
struct MegatronLaunch {
  std::string program;            ///< "pretrain_gpt.py"; empty: not told
  std::string where;              ///< "file:line"
  bool is_printed = false;        ///< by echo
  bool is_unnamed = false;        ///< the program is not told
  std::string condition;          ///< what decides whether it is started; empty: it is
  ForeignFields arguments;        ///< of the program
  ForeignFields launcher;         ///< of torchrun, deepspeed, srun, mpirun, #SBATCH
  std::string unknown;            ///< words of the launcher that the file does not tell
  std::vector<Problem> problems;  ///< words that cannot be told from arguments
};

/// The trainings that a script starts. Where it starts none, the arguments that its variables or
/// its lines hold. Throws InputError where there are none, or where what it starts is no training
/// of a GPT or Llama model.
std::vector<MegatronLaunch> megatron_launches(const std::string& text, const ShellScript& script,
                                              const std::string& name);

/// The first command of a script with one of `options`, whatever it starts; nothing where none is.
std::optional<MegatronLaunch> launch_with(std::initializer_list<std::string_view> options,
                                          const std::string& text, const ShellScript& script,
                                          const std::string& name);

/// A command taken apart, whatever it starts.
MegatronLaunch launch_of_command(const ShellCommand& command, const std::string& text,
                                 const ShellScript& script, const std::string& name);

/// A script as `options` have it run: variables that they define, its arguments, Slurm's.
ShellScript script_of_job(const std::string& text, const std::string& name,
                          const JobOptions& options);

/// The directives (#SBATCH) of a script as options under their long names.
ForeignFields slurm_directives(const std::string& text, const std::string& name);

/// Variables that Slurm sets, as far as the directives (#SBATCH) of a script tell.
ShellVariables slurm_variables(const std::string& text, const std::string& name);

/// GPUs of the job: of the launcher's options, else of the usual variables; 0: not told. What
/// cannot be read becomes a problem of the launcher's fields.
std::int64_t gpus_of(MegatronLaunch& launch, const ShellVariables& variables);

/// What to tell whoever names no cluster, of which those of H100 are assumed, where the directives
/// or srun ask for other GPUs by --gres, --gpus or --constraint; empty: nothing.
std::string gpu_not_taken(const std::string& text, const ShellScript& script,
                          const std::string& name, const JobOptions& options);

/// Nodes that it is started on, told as `gpus_of` is told GPUs; 0: not told.
std::int64_t nodes_of(MegatronLaunch launch, const ShellVariables& variables);

/// What to tell whoever asked for `gpus`, where the launcher starts another number; nothing where
/// it does not, or does not say.
std::optional<std::string> told_otherwise(MegatronLaunch launch, const ShellVariables& variables,
                                          std::int64_t gpus);

/// What a user can do about a value that holds "${TP}".
std::string hint_for_unknown(const std::string& value, const ShellScript& script);

}  // namespace tessera
