#include "app/cli/lab.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <unistd.h>

#include "app/shell/command_tree_json.h"
#include "app/shell/lab_commands.h"
#include "hw/units/input_error.h"
#include "hw/units/program_file.h"

namespace tessera {
namespace {

/// tessera-lab stands beside this program.
std::filesystem::path lab_program() {
  return program_beside(program_file(), "tessera-lab");
}

bool is_lab_command(std::string_view word) {
  return std::ranges::any_of(kLabCommands,
                             [&](const LabCommand& command) { return command.name == word; });
}

/// What `command` writes to its stdout; empty where it fails.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (pipe) {
    const std::size_t count = std::fread(part.data(), 1, part.size(), pipe.get());
    if (count == 0) break;
    text.append(part.data(), count);
  }
  return text;
}

std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

void run_lab_command(int argc, char** argv) {
  if (argc < 2 || !is_lab_command(argv[1])) return;
  const std::string program = lab_program();
  ::execv(program.c_str(), argv);
  throw InputError({program,
                    std::string("'") + argv[1] + "' is a command of the laboratory, which " +
                        "cannot be started: " + std::system_category().message(errno),
                    "install or build tessera-lab beside tessera"});
}

void add_lab_commands(CLI::App& app) {
  for (const LabCommand& command : kLabCommands)
    app.add_subcommand(std::string(command.name), std::string(command.description));
}

CommandNode with_lab_commands(CommandNode program) {
  const std::string text = output_of(quoted(lab_program()) + " " + std::string(kTreeCommand));
  if (text.empty()) return program;
  const CommandNode lab = command_tree_from_json(text);
  for (CommandNode& command : program.subcommands) {
    const auto same = std::ranges::find(lab.subcommands, command.path, &CommandNode::path);
    if (same != lab.subcommands.end()) command = *same;
  }
  return program;
}

}  // namespace tessera
