#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tessera {

/// What is wrong with a command line in one line, with what to write instead: the nearest option,
/// command or value, else where the help stands. `words` are the arguments behind the program's
/// name.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words);

/// Of a command that there is none of: the nearest one, else all.
std::string unknown_command_message(const CLI::App& app, const std::string& word);

/// "tessera help plan memory" as "tessera plan memory --help".
std::vector<std::string> with_help_last(std::vector<std::string> words);

}  // namespace tessera
