#include "app/shell/command_tree_json.h"

#include <nlohmann/json.hpp>

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandArgument, names, description, initial, choices,
                                   takes_value, required, repeats)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandNode, path, description, options, positionals,
                                   subcommands)

std::string command_tree_json(const CommandNode& root) {
  return nlohmann::json(root).dump();
}

CommandNode command_tree_from_json(const std::string& text) {
  return nlohmann::json::parse(text).get<CommandNode>();
}

}  // namespace tessera
