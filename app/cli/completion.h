#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/shell/command_tree.h"

namespace tessera {

/// Words by what a value names: kScenarioId -> the ids of scenarios. Words that end in "=" go on.
using CompletionWords = std::map<std::string, std::vector<std::string>>;

/// `program` with words in place of what its values name.
CommandNode with_words(CommandNode program, const CompletionWords& words);

/// Scripts that complete commands, options, values from a list and file names in a shell.
std::string bash_completion(const CommandNode& program);
std::string zsh_completion(const CommandNode& program);
std::string fish_completion(const CommandNode& program);

}  // namespace tessera
