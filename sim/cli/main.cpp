#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "hw/units/deadline.h"
#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"
#include "sim/cli/commands.h"
#include "sim/cli/exit_code.h"
#include "sim/cli/output.h"
#include "sim/engine/errors/deadlock_error.h"
#include "sim/engine/errors/out_of_memory_error.h"
#include "sim/engine/errors/time_limit_error.h"

namespace {

using tessera::ExitCode;

/// Logs go to stderr, so that stdout holds the answer alone; TESSERA_LOG sets the level.
void set_up_logging() {
  auto logger = spdlog::stderr_logger_st("tessera");
  logger->set_pattern("%l: %v");
  spdlog::set_default_logger(logger);
  const char* level = std::getenv("TESSERA_LOG");
  spdlog::set_level(spdlog::level::from_str(level ? level : "info"));
}

extern "C" void exit_interrupted(int) {
  tessera::remove_unfinished_file();
  std::_Exit(static_cast<int>(ExitCode::interrupted));
}

ExitCode report_input_error(const tessera::InputError& error) {
  for (const tessera::Problem& problem : error.problems()) spdlog::error("{}", problem.text());
  return ExitCode::bad_input;
}

/// CLI11 would only say that a command is required.
bool names_unknown_command(const CLI::App& app, const std::string& word) {
  if (word.empty() || word.front() == '-') return false;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (const CLI::App* command : commands) {
    if (command->get_name() == word) return false;
    if (!names.empty()) names += ", ";
    names += command->get_name();
  }
  spdlog::error("unknown command '{}'; use one of {}", word, names);
  return true;
}

ExitCode parse_and_run(int argc, char** argv) {
  CLI::App app("Tessera: how long a training step takes, where the time goes, whether it fits.",
               "tessera");
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  ExitCode exit_code = ExitCode::ok;
  tessera::add_commands(app, exit_code);
  if (argc > 1 && names_unknown_command(app, argv[1])) return ExitCode::usage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::ok : ExitCode::usage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, exit_interrupted);
  tessera::reserve_standard_streams();
  set_up_logging();
  try {
    return static_cast<int>(parse_and_run(argc, argv));
  } catch (const tessera::InputError& error) {
    return static_cast<int>(report_input_error(error));
  } catch (const tessera::TimeLimitError& error) {
    spdlog::error("{}", error.what());
    return static_cast<int>(ExitCode::out_of_time);
  } catch (const tessera::DeadlineError& error) {
    spdlog::error("{}", error.what());
    return static_cast<int>(ExitCode::out_of_time);
  } catch (const tessera::OutOfMemoryError& error) {
    spdlog::error("{}", error.what());
    return static_cast<int>(ExitCode::does_not_fit);
  } catch (const tessera::DeadlockError& error) {
    spdlog::error("{}", error.what());
    return static_cast<int>(ExitCode::internal);
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return static_cast<int>(ExitCode::internal);
  }
}
