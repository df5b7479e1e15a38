#pragma once

#include <string>

#include "app/shell/command_tree.h"

namespace tessera {

/// A tree as it goes from one program to another. `command_tree_from_json` takes what
/// `command_tree_json` wrote.
std::string command_tree_json(const CommandNode& root);
CommandNode command_tree_from_json(const std::string& text);

}  // namespace tessera
