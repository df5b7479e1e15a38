// tessera-lab: fits the models, scores them, and puts simulations beside measurements. It is called
// as a command of tessera, and speaks as that.
#include "app/shell/command_tree_json.h"
#include "app/shell/lab_commands.h"
#include "app/shell/output.h"
#include "app/shell/run_program.h"
#include "lab/cli/commands.h"

namespace {

/// Hidden from help.
void add_tree_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(std::string(tessera::kTreeCommand))->group("");
  command->callback(
      [&app] { tessera::print(tessera::command_tree_json(tessera::command_tree(app))); });
}

void add_commands(CLI::App& app, tessera::ExitCode& exit_code) {
  tessera::add_predict_command(app);
  tessera::add_train_command(app);
  tessera::add_calibrate_command(app);
  tessera::add_validate_command(app, exit_code);
  tessera::add_reproduce_command(app, exit_code);
  add_tree_command(app);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run_program("tessera", "Tessera's laboratory: fits, scores and validates.",
                              add_commands, argc, argv);
}
