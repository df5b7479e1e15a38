#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/import/job/foreign_fields.h"

namespace tessera {

/// Arguments of Hugging Face's Trainer as a file has them.
struct TrainerArguments {
  ForeignFields fields;              ///< "--bf16"; those without a value are left out
  bool is_of_another = false;        ///< translated from those of a program around the Trainer
  std::vector<std::string> assumed;  ///< what such a program does without being told
  std::vector<std::string> ignored;
  std::vector<std::string> approximate;
};

/// How a program around the Trainer names things.
struct TrainerDialect {
  std::span<const std::string_view> read;                             ///< what its reader asks for
  std::span<const std::pair<std::string_view, const char*>> renamed;  ///< to Trainer's options
  std::span<const std::string_view> harmless;  ///< no step depends on them, by how they begin
  std::span<const UsualValue> rules;           ///< not simulated, unless they have this value
};

/// LLaMA-Factory's arguments as those of the Trainer that it starts (llamafactory/hparams and
/// model/*.py of 2024 and 2025, recalled): it checkpoints, chooses formats and adapts by defaults
/// of its own.
TrainerArguments llama_factory_arguments(ForeignFields file);

/// axolotl's (axolotl/utils/schemas of 2024 and 2025, recalled).
TrainerArguments axolotl_arguments(ForeignFields file);

/// What `file` was not asked for goes to `arguments`: under the Trainer's name, or as ignored.
/// Those of the rules are problems.
void translate_rest(ForeignFields& file, const TrainerDialect& dialect,
                    TrainerArguments& arguments);

/// Puts `option` where `key` of `file` stands, or where the file as a whole does.
void put_argument(TrainerArguments& arguments, const ForeignFields& file, const std::string& key,
                  const std::string& option, const std::string& value);

/// "q_proj v_proj" of "q_proj,v_proj".
std::string words_of_list(std::string list);

}  // namespace tessera
