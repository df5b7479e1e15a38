#include "app/shell/output.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hw/units/input_error.h"
#include "hw/units/plain_text.h"
#include "sim/report/text/fitted_lines.h"

namespace tessera {

void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The lowest free number is this one. Opened the wrong way round, so that its use still fails.
    open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

namespace {

void write_out(const std::string& plain) {
  const bool written = std::fwrite(plain.data(), 1, plain.size(), stdout) == plain.size();
  if (written && std::fflush(stdout) == 0) return;
  throw InputError({.where = "stdout",
                    .what = std::string("cannot be written: ") + std::strerror(errno),
                    .hint = "give the answer a place to go, such as > FILE"});
}

/// https://no-color.org: whatever it holds, but for nothing.
bool has_colours() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return is_terminal() && (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

}  // namespace

void print(const std::string& text) {
  write_out(without_control_characters(text));
}

void print_styled(const std::string& text) {
  write_out(terminal_colours(without_control_characters(text)));
}

bool is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

std::size_t width_of(int stream) {
  constexpr std::size_t kNarrowest = 40;
  winsize size{};
  if (ioctl(stream, TIOCGWINSZ, &size) != 0 || size.ws_col < kNarrowest) return kTerminalWidth;
  return size.ws_col;
}

std::string for_people(std::string_view text) {
  return fitted(text, width_of(STDOUT_FILENO));
}

TextStyle text_style(bool notes) {
  return {.notes = notes, .colour = has_colours()};
}

void add_notes_option(CLI::App& command, bool& notes) {
  command.add_flag("--notes", notes, "say what the terms of the answer mean");
}

void add_format_option(CLI::App& command, std::string& format,
                       const std::vector<std::string>& accepted) {
  format = accepted.front();
  command.add_option("--format", format, "form of the answer on stdout")
      ->check(CLI::IsMember(accepted))
      ->capture_default_str();
}

void add_scenario_argument(CLI::App& command, std::string& scenario) {
  command.add_option("FILE", scenario, "id of tessera list scenarios, or a file (YAML)")
      ->type_name(kScenarioId)
      ->required();
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides, "path=value; overrides a field of the scenario; repeatable")
      ->type_name(kFieldPath)
      ->allow_extra_args(false);
}

void add_form_option(CLI::App& command, std::string& form) {
  form = "tessera";
  command.add_option("--form", form, "form of the kernel model")
      ->check(CLI::IsMember({"tessera", "neusight", "roofline"}))
      ->capture_default_str();
}

}  // namespace tessera
