#pragma once

#include <CLI/CLI.hpp>

#include "app/shell/exit_code.h"

namespace tessera {

// Commands of tessera-lab, in the order of app/shell/lab_commands.h. A callback writes the answer
// to stdout and what to return into `exit_code`, and throws InputError for bad input.
void add_predict_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_calibrate_nccl_command(CLI::App& calibrate);  ///< below `calibrate`
void add_calibrate_host_command(CLI::App& calibrate);  ///< likewise
void add_validate_command(CLI::App& app, ExitCode& exit_code);
void add_reproduce_command(CLI::App& app, ExitCode& exit_code);

}  // namespace tessera
