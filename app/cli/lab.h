#pragma once

#include <CLI/CLI.hpp>

#include "app/shell/command_tree.h"

namespace tessera {

/// Where the first word is a command of the laboratory, becomes tessera-lab with the same words, as
/// git becomes its own commands. Throws InputError where that program was not installed.
void run_lab_command(int argc, char** argv);

/// Names the laboratory's commands in the list of `--help`.
void add_lab_commands(CLI::App& app);

/// `program` with the laboratory's commands as tessera-lab describes them; where that is not
/// installed, by their names.
CommandNode with_lab_commands(CommandNode program);

}  // namespace tessera
