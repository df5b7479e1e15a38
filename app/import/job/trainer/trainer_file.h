#pragma once

#include "app/import/job/trainer/trainer_dialect.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Whose arguments a file holds: Hugging Face's Trainer's, as HfArgumentParser and TRL's parser
/// take them, or those of a program around it that are translated.
enum class TrainerFileKind { none, trainer, llama_factory, axolotl };
TrainerFileKind trainer_file_kind(const YamlNode& tree);

bool holds_trainer_arguments(const YamlNode& tree);

/// The arguments as the Trainer's options ("--bf16"). Throws InputError where one holds a
/// configuration that is read from files alone.
TrainerArguments trainer_arguments(const YamlNode& tree);

}  // namespace tessera
