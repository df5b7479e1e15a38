// tessera manual, tessera completion: what the commands are, for man and for shells.
#include "app/cli/manual.h"

#include <memory>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/completion.h"
#include "app/cli/lab.h"
#include "app/shell/command_tree.h"
#include "app/shell/output.h"

namespace tessera {

void add_manual_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Print the manual page, for man -l -");
  command->callback(
      [&app] { print(manual_page(with_lab_commands(command_tree(app)), TESSERA_VERSION)); });
}

void add_completion_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes in a shell");
  command->add_option("SHELL", *shell)->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell] {
    const CommandNode program = with_lab_commands(command_tree(app));
    if (*shell == "bash") return print(bash_completion(program));
    print(*shell == "zsh" ? zsh_completion(program) : fish_completion(program));
  });
}

}  // namespace tessera
