#pragma once

#include <map>
#include <string>
#include <vector>

namespace tessera {

struct ShellWord {
  std::string text;
  int line = 1;  ///< where it starts
};

/// Values of shell variables; an array has several. "NAME[key]" is one of an associative array.
using ShellVariables = std::map<std::string, std::vector<std::string>>;

struct ShellCommand {
  std::vector<ShellWord> words;  ///< expanded
  std::string condition;  ///< what decides whether it runs and cannot be told; empty: it runs
};

/// What is known ahead of a script.
struct ShellSettings {
  ShellVariables defined;              ///< they keep these values, whatever the script sets
  ShellVariables preset;               ///< values at its start
  std::vector<std::string> arguments;  ///< $1 and on
};

/// What a script says, as far as it can be told without running programs.
struct ShellScript {
  std::vector<ShellCommand> commands;
  ShellVariables variables;                      ///< at the end of the script
  std::map<std::string, std::string> undecided;  ///< variable -> what its value depends on
  std::map<std::string, std::string> files;      ///< what the script writes by cat, tee or echo
  std::vector<std::string> sourced;              ///< scripts that it reads and this one does not
  std::string ended;                             ///< "file:line" of an exit that is reached
};

/// Follows a script for sh or bash: variables, arrays, quotes, expansions, arithmetic, conditions,
/// loops, functions, heredocs. Programs are not run: commands are collected, $(command) and unset
/// variables stay as texts that hold a '$'. A condition that depends on these is undecided: every
/// branch is followed, and what then differs is `undecided`. Unset variables count as empty where
/// a script asks for that ([ -z "$A" ], ${A:-default}). `name` stands for the file. Throws
/// InputError for quotes, brackets and blocks that do not end, and for what expands or runs
/// without bound.
ShellScript read_shell_script(const std::string& text, const std::string& name,
                              const ShellSettings& settings);

/// Words of a line, quotes taken off.
std::vector<std::string> shell_words(const std::string& line);

/// Names of variables whose values `text` still waits for: "TP" in "${TP}", "1" in "$1".
std::vector<std::string> unknown_variables(const std::string& text);

/// Whether `text` holds what is only known when the script runs.
bool is_unknown(const std::string& text);

}  // namespace tessera
