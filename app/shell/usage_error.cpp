#include "app/shell/usage_error.h"

#include <algorithm>

#include "sim/config/suggest.h"

namespace tessera {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* below) { return !below->get_name().empty(); });
}

/// The command that the words name, as far as they do, and its name with those above it.
struct NamedCommand {
  const CLI::App* app;
  std::string path;
};

NamedCommand command_of(const CLI::App& app, const std::vector<std::string>& words) {
  NamedCommand named{&app, app.get_name()};
  for (const std::string& word : words) {
    const auto below = commands_of(*named.app);
    const auto found =
        std::ranges::find(below, word, [](const CLI::App* a) { return a->get_name(); });
    if (found == below.end()) break;
    named = {*found, named.path + " " + word};
  }
  return named;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const CLI::App* group : command.get_subcommands([](const CLI::App*) { return true; }))
    if (group->get_name().empty())
      for (const std::string& name : options_of(*group)) names.push_back(name);
  return names;
}

/// "--set parallelism.tensor 4": the value lost its '='.
std::string lost_equals(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i)
    if (words[i].starts_with("--set") && words[i + 1].find('=') == std::string::npos &&
        !words[i + 2].starts_with("-"))
      return "write " + words[i] + " " + words[i + 1] + "=" + words[i + 2];
  return "";
}

/// The nearest option for one that the command does not have.
std::string nearest_option(const CLI::App& command, const std::vector<std::string>& words) {
  const std::vector<std::string> known = options_of(command);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::ranges::find(known, name) != known.end()) continue;
    if (const std::string best = nearest(name, known); !best.empty()) return did_you_mean(best);
  }
  return "";
}

/// "WHAT: gpu not in {gpus,models}" as CLI::IsMember says it: the nearest of the choices.
std::string nearest_choice(const std::string& message) {
  const std::size_t middle = message.find(" not in {"), first = message.find(": ");
  const std::size_t end = message.rfind('}');
  if (middle == std::string::npos || first == std::string::npos || end == std::string::npos)
    return "";
  const std::string list = message.substr(middle + 9, end - middle - 9);
  const std::string best =
      nearest(message.substr(first + 2, middle - first - 2), CLI::detail::split(list, ','));
  return best.empty() ? "" : did_you_mean(best);
}

/// What `error` says. CLI11 lists arguments that nothing takes from the last to the first.
std::string message_of(const CLI::ParseError& error) {
  const std::string message = error.what();
  const auto colon = message.find(": ");
  if (!message.starts_with("The following arguments") || colon == std::string::npos) return message;
  const std::vector<std::string> rest = CLI::detail::split(message.substr(colon + 2), ' ');
  return message.substr(0, colon + 2) + CLI::detail::rjoin(rest, " ");
}

/// CLI11 begins its sentences with capitals.
std::string plain_words(std::string message) {
  if (message.starts_with("A subcommand is required")) message = "a command is missing";
  if (message.starts_with("The following")) message.front() = 't';
  std::ranges::replace(message, '\n', ' ');
  for (std::size_t at = message.find(','); at != std::string::npos; at = message.find(',', at + 2))
    if (at + 1 < message.size() && message[at + 1] != ' ') message.insert(at + 1, " ");
  return message;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words) {
  const NamedCommand command = command_of(app, words);
  const std::string message = message_of(error);
  std::string hint = nearest_choice(message);
  if (hint.empty() && message.find("not expected") != std::string::npos) {
    hint = lost_equals(words);
    if (hint.empty()) hint = nearest_option(*command.app, words);
  }
  const std::string help = command.path + " --help";
  return plain_words(message) + "; " + (hint.empty() ? "see " + help : hint + " (" + help + ")");
}

std::string unknown_command_message(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return "unknown command '" + word + "'; " + suggestion(word, names);
}

std::vector<std::string> with_help_last(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

}  // namespace tessera
