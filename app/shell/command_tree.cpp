#include "app/shell/command_tree.h"

namespace tessera {
namespace {

/// CLI11 describes the values that CLI::IsMember accepts as "{a,b}", behind the type.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

CommandArgument argument_of(const CLI::Option& option) {
  CommandArgument argument{.names = {},
                           .description = option.get_description(),
                           .initial = option.get_default_str(),
                           .choices = choices_of(option),
                           .value_name = option.get_type_name(),
                           .takes_value = option.get_items_expected_max() > 0,
                           .required = option.get_required(),
                           .repeats = option.get_items_expected_max() > 1};
  if (option.nonpositional()) {
    for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  } else {
    argument.names.push_back(option.get_name(true));
  }
  return argument;
}

void add_arguments(const CLI::App& app, CommandNode& node) {
  for (const CLI::Option* option : app.get_options()) {
    auto& list = option->nonpositional() ? node.options : node.positionals;
    list.push_back(argument_of(*option));
  }
}

/// Subcommands, and groups of options, which CLI11 keeps as subcommands without a name.
std::vector<const CLI::App*> below_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

CommandNode node_of(const CLI::App& app, const std::string& path) {
  CommandNode node{.path = path,
                   .description = app.get_description(),
                   .options = {},
                   .positionals = {},
                   .subcommands = {}};
  add_arguments(app, node);
  for (const CLI::App* below : below_of(app)) {
    if (below->get_name().empty()) {
      add_arguments(*below, node);
    } else {
      const std::string prefix = path.empty() ? "" : path + " ";
      node.subcommands.push_back(node_of(*below, prefix + below->get_name()));
    }
  }
  return node;
}

void append(const CommandNode& node, std::vector<const CommandNode*>& nodes) {
  nodes.push_back(&node);
  for (const CommandNode& below : node.subcommands) append(below, nodes);
}

}  // namespace

CommandNode command_tree(const CLI::App& app) {
  return node_of(app, "");
}

std::vector<const CommandNode*> flattened(const CommandNode& root) {
  std::vector<const CommandNode*> nodes;
  append(root, nodes);
  return nodes;
}

std::string name_of(const CommandNode& command) {
  return command.path.substr(command.path.rfind(' ') + 1);
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

}  // namespace tessera
