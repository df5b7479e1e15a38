#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/import/job/imported_job.h"
#include "app/import/job/megatron/megatron_launch.h"
#include "app/import/shell/shell_words.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

bool has_word(const ShellCommand& command, std::string_view word);

/// What "conda run -n NAME" runs: its options are not the launcher's.
ShellCommand without_conda(ShellCommand command);

/// One of the Trainer's arguments is enough, in each of the three ways that it is launched.
bool is_of_trainer(const ShellCommand& command);

/// Of arguments: behind the program (HfArgumentParser), behind --config (TRL's parser), behind
/// "llamafactory-cli train" and "axolotl.cli.train", with the settings behind it over it. Nothing
/// where there is none, or it holds something else.
std::optional<YamlNode> arguments_file(const ShellCommand& command, const ShellScript& script,
                                       const std::string& name, const JobOptions& options);

/// Options behind "axolotl train FILE" go over the file; those of its launcher ("--num-processes
/// 4") are accelerate's.
void take_options_of_axolotl(YamlNode& tree, MegatronLaunch& launch);

/// Whether a program around the Trainer is started, whose arguments are translated: by its file, or
/// by arguments that LLaMA-Factory alone has.
bool starts_another(const ShellCommand& command, const std::optional<YamlNode>& file);

/// Programs that start processes on all GPUs that they see, by themselves.
bool starts_all_gpus(const ShellCommand& command);

/// LLaMA-Factory hands counts of its environment to torchrun (cli.py), else all GPUs that it sees.
void add_counts(const ShellScript& script, MegatronLaunch& launch);

}  // namespace tessera
