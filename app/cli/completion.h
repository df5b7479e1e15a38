#pragma once

#include <string>

#include "app/shell/command_tree.h"

namespace tessera {

/// Scripts that complete commands, options, values from a list and file names in a shell.
std::string bash_completion(const CommandNode& program);
std::string zsh_completion(const CommandNode& program);
std::string fish_completion(const CommandNode& program);

}  // namespace tessera
