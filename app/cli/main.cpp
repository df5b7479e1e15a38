// tessera: how long a training step takes, where the time goes, whether it fits.
#include "app/cli/commands.h"
#include "app/cli/lab.h"
#include "app/shell/run_program.h"

int main(int argc, char** argv) {
  const auto add_commands = [&](CLI::App& app, tessera::ExitCode& exit_code) {
    tessera::run_lab_command(argc, argv);
    tessera::add_commands(app, exit_code);
  };
  return tessera::run_program(
      "tessera", "Tessera: how long a training step takes, where the time goes, whether it fits.",
      add_commands, argc, argv);
}
