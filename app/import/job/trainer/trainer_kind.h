#pragma once

#include <string>
#include <vector>

#include "app/import/job/foreign_fields.h"
#include "app/import/shell/shell_words.h"

namespace tessera {

/// A command that takes arguments of Hugging Face's Trainer, or a file of them alone.
struct TrainerCommand {
  std::string program;  ///< as the script has it; empty: nobody says
  std::string where;    ///< "file:line"
  const ShellScript& script;
  bool is_file = false;
};

/// Throws InputError where `command` with `arguments` does not train one model alone (preferences,
/// rewards, rollouts, evaluation), or where variables distribute it. What cannot be told becomes a
/// problem of the arguments.
void refuse_other_trainings(const TrainerCommand& command, ForeignFields& arguments);

/// What is taken for granted of the program, or of versions that nothing names, in sentences.
std::vector<std::string> notes_on_program(const TrainerCommand& command, ForeignFields& arguments);

}  // namespace tessera
