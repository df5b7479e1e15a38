#include "app/shell/run_program.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "app/shell/interrupt.h"
#include "app/shell/output.h"
#include "app/shell/usage_error.h"
#include "hw/units/deadline.h"
#include "hw/units/input_error.h"
#include "hw/units/plain_text.h"
#include "hw/units/replace_file.h"
#include "sim/engine/errors/deadlock_error.h"
#include "sim/engine/errors/out_of_memory_error.h"
#include "sim/engine/errors/time_limit_error.h"
#include "sim/engine/network/simgrid_module.h"
#include "sim/process/late_load.h"
#include "sim/report/text/fitted_lines.h"

namespace tessera {
namespace {

/// "error: text". Texts of the user in a message are shown, not obeyed. On a terminal with lines
/// as wide as it is; elsewhere a message is one line, for grep.
class PlainMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const auto level = spdlog::level::to_string_view(message.level);
    std::string text(level.data(), level.size());
    text += ": " + without_control_characters(
                       std::string_view(message.payload.data(), message.payload.size()));
    if (isatty(STDERR_FILENO) == 1) text = fitted(text, width_of(STDERR_FILENO));
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PlainMessage>();
  }
};

/// The help of CLI11, whose lines are as long as their texts, with a place to break behind each
/// choice of "{a,b,c}".
class FittedHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return for_people(CLI::Formatter::make_help(app, std::move(name), mode));
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text, plain = CLI::Formatter::make_option_opts(option);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      text += plain[i];
      if (plain[i] == ',' && plain.size() > kLongChoices) text += ' ';
    }
    return text;
  }

 private:
  static constexpr std::size_t kLongChoices = 60;
};

/// Logs go to stderr, so that stdout holds the answer alone; TESSERA_LOG sets the level.
void set_up_logging() {
  auto logger = spdlog::stderr_logger_st("tessera");
  auto form = std::make_unique<spdlog::pattern_formatter>();
  form->add_flag<PlainMessage>('*').set_pattern("%*");
  logger->set_formatter(std::move(form));
  spdlog::set_default_logger(logger);
  const char* level = std::getenv("TESSERA_LOG");
  spdlog::set_level(spdlog::level::from_str(level ? level : "info"));
}

/// With 128 and the number of the signal, as shells tell of it: Ctrl-C is 130.
extern "C" void exit_interrupted(int signal) {
  remove_unfinished_file();
  if (signal == SIGINT) tell_interrupted();
  std::_Exit(static_cast<int>(ExitCode::interrupted) - SIGINT + signal);
}

/// No half-written file stays behind. What nohup has turned off stays off.
void clean_up_on_signals() {
  std::signal(SIGINT, exit_interrupted);
  std::signal(SIGTERM, exit_interrupted);
  if (std::signal(SIGHUP, exit_interrupted) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

/// Without spdlog, which allocates.
ExitCode report_lack_of_memory() {
  std::fputs("error: memory ran out; give the job more (ulimit -v, cgroup), or a smaller job\n",
             stderr);
  return ExitCode::bad_input;
}

/// Of exceptions that nothing catches: those of libraries that set themselves up ahead of main().
[[noreturn]] void end_uncaught() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    std::_Exit(static_cast<int>(report_lack_of_memory()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: internal error: %s\n", error.what());
  } catch (...) {
    std::fputs("error: internal error\n", stderr);
  }
  std::abort();
}

/// Runs ahead of other objects' constructors.
[[gnu::constructor(101)]] void catch_early_exceptions() {
  std::set_terminate(end_uncaught);
}

ExitCode report_input_error(const InputError& error) {
  for (const Problem& problem : error.problems()) spdlog::error("{}", problem.text());
  return ExitCode::bad_input;
}

/// CLI11 would only say that a command is required.
bool names_unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words.front().empty() || words.front().front() == '-') return false;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_word = [&](const CLI::App* command) {
    return command->get_name() == words.front();
  };
  if (std::ranges::any_of(commands, is_word)) return false;
  spdlog::error("{}", unknown_command_message(app, words.front()));
  return true;
}

ExitCode parse_and_run(CLI::App& app, const AddCommands& add_commands, int argc, char** argv) {
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  ExitCode exit_code = ExitCode::ok;
  add_commands(app, exit_code);
  const std::vector<std::string> words =
      with_help_last(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (names_unknown_command(app, words)) return ExitCode::usage;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them reversed
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      spdlog::error("{}", usage_message(app, error, words));
      return ExitCode::usage;
    }
    std::ostringstream nothing;
    app.exit(error, std::cout, nothing);
  }
  return exit_code;
}

/// What to return to the shell after the exception that is being handled, which is told.
ExitCode report_exception() {
  try {
    throw;
  } catch (const InputError& error) {
    return report_input_error(error);
  } catch (const TimeLimitError& error) {
    spdlog::error("{}", error.what());
    return ExitCode::out_of_time;
  } catch (const DeadlineError& error) {
    spdlog::error("{}", error.what());
    return ExitCode::out_of_time;
  } catch (const OutOfMemoryError& error) {
    spdlog::error("{}", error.what());
    return ExitCode::does_not_fit;
  } catch (const DeadlockError& error) {
    spdlog::error("{}", error.what());
    return ExitCode::internal;
  } catch (const std::bad_alloc&) {
    return report_lack_of_memory();
  } catch (const std::system_error& error) {
    spdlog::error("the system refused something: {}; check rights, ulimit -n, ulimit -u and memory",
                  error.what());
    return ExitCode::bad_input;
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return ExitCode::internal;
  }
}

}  // namespace

int run_program(const std::string& name, const std::string& description,
                const AddCommands& add_commands, int argc, char** argv) {
  late_load() = {simgrid_is_loaded, load_simgrid};
  clean_up_on_signals();
  reserve_standard_streams();
  try {
    set_up_logging();
    CLI::App app(description, name);
    app.formatter(std::make_shared<FittedHelp>());
    return static_cast<int>(parse_and_run(app, add_commands, argc, argv));
  } catch (...) {
    return static_cast<int>(report_exception());
  }
}

}  // namespace tessera
