#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "app/shell/exit_code.h"

namespace tessera {

/// Every command adds itself to `app`; its callback writes the answer to stdout and what to return
/// into `exit_code`.
using AddCommands = std::function<void(CLI::App& app, ExitCode& exit_code)>;

/// The main() of a program: reads the command line, runs the command, and tells every error on
/// stderr with its exit code. Logs go to stderr; TESSERA_LOG sets their level.
int run_program(const std::string& name, const std::string& description,
                const AddCommands& add_commands, int argc, char** argv);

}  // namespace tessera
