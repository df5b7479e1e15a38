#include "app/cli/manual.h"

#include <string_view>
#include <utility>

#include "app/shell/exit_code.h"

namespace tessera {
namespace {

constexpr std::pair<ExitCode, const char*> kExitCodes[] = {
    {ExitCode::ok, "the answer is on the standard output"},
    {ExitCode::internal, "a bug of Tessera"},
    {ExitCode::usage, "unknown command or option"},
    {ExitCode::bad_input, "bad input: a file or a value"},
    {ExitCode::does_not_fit, "simulated, but needs more memory than a GPU has"},
    {ExitCode::out_of_tolerance, "--tolerance missed"},
    {ExitCode::out_of_time, "simulation.time_limit is over"},
    {ExitCode::interrupted, "interrupted"}};

constexpr std::pair<const char*, const char*> kEnvironment[] = {
    {"TESSERA_HOME",
     "folder that holds configs and predictor/weights; by default share/tessera beside the "
     "folder of the program"},
    {"TESSERA_LOG", "what goes to the standard error: debug, info (the default), warn, error"},
    {"TESSERA_MEASUREMENTS", "folder of measurements that are not part of the program"}};

constexpr std::pair<const char*, const char*> kExamples[] = {
    {"simulate gpt2-large_4xh100_dp4",
     "how long a step takes, where the time goes, whether it fits"},
    {"simulate gpt2-large_4xh100_dp4 --set training.recompute=full --report step.html",
     "the same with layers recomputed, and as a page for a browser"},
    {"serve gpt2-large_4xh100_dp4", "a local page that simulates while its sliders move"},
    {"compare gpt2-large_4xh100_dp4 gpt2-large_4xh100_pp4", "two steps beside each other"},
    {"explain-step gpt2-large_4xh100_dp4", "why the step takes as long, and what would help"},
    {"plan parallelism gpt3-xl hgx-h100-4 --global-batch 16 --sequence-length 512",
     "the fastest layouts of a model on a cluster"},
    {"explain MFU", "what a term means; also a field, a GPU or a model"},
    {"list models --long", "what is shipped, with figures"}};

/// Text for roff: backslashes and dashes as themselves, nothing at the start of a line that would
/// be a request.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\n')
      escaped += ' ';
    else
      escaped += c;
  }
  const bool is_request = !escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'');
  return is_request ? "\\&" + escaped : escaped;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

/// A term on a line of its own and what it means, indented below.
std::string entry(const std::string& term, const std::string& meaning) {
  return ".TP\n" + term + "\n" + (meaning.empty() ? "\\&" : meaning) + "\n";
}

std::string meaning_of(const CommandArgument& argument) {
  std::string text = roff(argument.description);
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (!argument.choices.empty()) add("one of " + roff(joined(argument.choices, ", ")));
  if (!argument.initial.empty()) add("default: " + roff(argument.initial));
  return text;
}

std::string option_text(const CommandArgument& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  const std::string value = option.takes_value ? " " + italic("value") : "";
  return entry(joined(names, ", ") + value, meaning_of(option));
}

std::string synopsis(const CommandNode& command) {
  std::string line = bold(command.path.empty() ? "tessera" : "tessera " + command.path);
  if (!command.subcommands.empty()) line += " " + italic("command");
  for (const CommandArgument& argument : command.positionals) {
    const std::string name = italic(argument.names.front()) + (argument.repeats ? " ..." : "");
    line += argument.required ? " " + name : " [" + name + "]";
  }
  return line + " [" + italic("options") + "]\n";
}

/// `--help` stands once, in the general options.
bool is_help(const CommandArgument& option) {
  return option.names.front() == "--help";
}

std::string section(const CommandNode& command) {
  std::string text = ".SS tessera " + roff(command.path) + "\n" + roff(command.description) +
                     ".\n.PP\n" + synopsis(command);
  for (const CommandArgument& argument : command.positionals) {
    text += entry(italic(argument.names.front()), meaning_of(argument));
  }
  for (const CommandArgument& option : command.options) {
    if (!is_help(option)) text += option_text(option);
  }
  return text;
}

}  // namespace

std::string manual_page(const CommandNode& program, const std::string& version) {
  std::string page = ".TH TESSERA 1 \"\" \"tessera " + roff(version) + "\" \"User Commands\"\n" +
                     ".SH NAME\ntessera \\- simulate distributed training steps\n" +
                     ".SH SYNOPSIS\n" + synopsis(program) + ".SH DESCRIPTION\n" +
                     roff(program.description) +
                     "\nThe answer goes to the standard output, messages to the standard error.\n" +
                     ".SH OPTIONS\n";
  for (const CommandArgument& option : program.options) page += option_text(option);
  page += ".SH COMMANDS\n";
  for (const CommandNode* command : flattened(program)) {
    if (command != &program) page += section(*command);
  }
  page += ".SH EXAMPLES\n";
  for (const auto& [command, meaning] : kExamples)
    page += entry(bold(std::string("tessera ") + command), roff(meaning));
  page += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) {
    page += entry(bold(std::to_string(static_cast<int>(code))), roff(meaning));
  }
  page += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : kEnvironment) page += entry(bold(name), roff(meaning));
  return page;
}

}  // namespace tessera
