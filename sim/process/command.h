#pragma once

#include <string>
#include <vector>

namespace tessera {

/// What a program of the system printed and returned.
struct CommandResult {
  int exit_code = 0;   ///< 128 + signal where one ended it; 127 where there is no such program
  std::string output;  ///< stdout
  std::string errors;  ///< stderr
};

/// Runs a program found on the PATH and waits for it; no shell, so that arguments need no quotes.
/// Throws std::system_error if there is no process to be had.
CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace tessera
