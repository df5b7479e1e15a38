#pragma once

#include <map>
#include <string>
#include <vector>

namespace tessera {

struct ShellWord {
  std::string text;
  int line = 1;  ///< where it starts
};

/// Values of shell variables; an array has several.
using ShellVariables = std::map<std::string, std::vector<std::string>>;

/// What a script says, as far as it can be told without running it.
struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;  ///< words of each, expanded
  ShellVariables variables;                      ///< at the end of the script
};

/// Splits a script for sh or bash into commands and expands the variables that it sets or that
/// `variables` holds: quotes, $NAME, ${NAME}, ${NAME:-default}, "${NAME[@]}", $((arithmetic)),
/// arrays, continued lines, comments. Conditions, loops and functions are not run: their commands
/// stand one after the other. What cannot be expanded ($(command), an unknown variable) stays as it
/// is. `name` stands for the file. Throws InputError for quotes and brackets that do not end and
/// for texts that expand without bound.
ShellScript read_shell_script(const std::string& text, const std::string& name,
                              ShellVariables variables);

}  // namespace tessera
