// tessera manual, tessera completion: what the commands are, for man and for shells.
#include "app/cli/manual.h"

#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/completion.h"
#include "app/cli/lab.h"
#include "app/shell/command_tree.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "sim/config/fields/explain.h"

namespace tessera {
namespace {

/// The ids that are shipped, and the paths of fields.
CompletionWords completion_words() {
  const Catalog catalog = shipped_catalog();
  CompletionWords words{{kScenarioId, catalog.ids(CatalogKind::scenarios)},
                        {kSweepId, catalog.ids(CatalogKind::sweeps)},
                        {kNeighboursId, catalog.ids(CatalogKind::neighbours)},
                        {kModelId, catalog.ids(CatalogKind::models)},
                        {kClusterId, catalog.ids(CatalogKind::clusters)},
                        {kGpuId, catalog.ids(CatalogKind::gpus)}};
  std::vector<std::string>& explainable = words[kExplainable];
  explainable = field_paths();
  for (const std::string& path : field_paths()) words[kFieldPath].push_back(path + "=");
  for (const char* kind : {kModelId, kGpuId})
    explainable.insert(explainable.end(), words[kind].begin(), words[kind].end());
  return words;
}

}  // namespace

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
    const CommandNode program =
        with_words(with_lab_commands(command_tree(app)), completion_words());
    if (*shell == "bash") return print(bash_completion(program));
    print(*shell == "zsh" ? zsh_completion(program) : fish_completion(program));
  });
}

}  // namespace tessera
