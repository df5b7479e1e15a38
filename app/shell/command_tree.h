#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// An option or a positional argument of a command, as its help shows it.
struct CommandArgument {
  std::vector<std::string> names;    ///< with their dashes; a positional has its one name
  std::string description;           ///< empty: the name says it all
  std::string initial;               ///< value without the option; empty: none to tell
  std::vector<std::string> choices;  ///< all accepted values; empty: any
  std::string value_name = {};       ///< what a value names (app/shell/output.h): "SCENARIO"
  bool takes_value = true;           ///< false for a flag
  bool required = false;
  bool repeats = false;
};

/// A command and what lies below it, in the order in which they were added.
struct CommandNode {
  std::string path;  ///< words behind the program's name, as "plan memory"; empty for the program
  std::string description;
  std::vector<CommandArgument> options;
  std::vector<CommandArgument> positionals;
  std::vector<CommandNode> subcommands;
};

CommandNode command_tree(const CLI::App& app);

/// `root` and all below it, each before its subcommands. Valid as long as `root` is.
std::vector<const CommandNode*> flattened(const CommandNode& root);

/// The last word of the path.
std::string name_of(const CommandNode& command);

/// `words` with `separator` between them.
std::string joined(const std::vector<std::string>& words, std::string_view separator = " ");

}  // namespace tessera
