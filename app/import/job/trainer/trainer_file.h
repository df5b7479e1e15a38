#pragma once

#include "app/import/job/foreign_fields.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Whether `tree` holds arguments of Hugging Face's Trainer, as HfArgumentParser and TRL's parser
/// take them from a file; not those of programs around it, which have names of their own beside.
bool holds_trainer_arguments(const YamlNode& tree);

/// The arguments as options ("--bf16"); those without a value are left out. Throws InputError where
/// one holds a configuration that is read from files alone.
ForeignFields trainer_arguments(const YamlNode& tree);

}  // namespace tessera
