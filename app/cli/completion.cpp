#include "app/cli/completion.h"

#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

/// `text` in single quotes, as bash and zsh read it.
std::string shell_quoted(std::string_view text) {
  std::string quotes = "'";
  for (const char c : text) quotes += c == '\'' ? "'\\''" : std::string(1, c);
  return quotes + "'";
}

/// What a positional accepts where it is a choice.
std::vector<std::string> choices_of(const CommandNode& command) {
  for (const CommandArgument& argument : command.positionals) {
    if (!argument.choices.empty()) return argument.choices;
  }
  return {};
}

/// Patterns `"command option"` of a case, for the names of `option`.
std::string patterns(const CommandNode& command, const CommandArgument& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.names) all.push_back('"' + command.path + ' ' + name + '"');
  return joined(all, " | ");
}

/// Lines that follow the words before the cursor down the tree of commands; `$word` is one of them.
std::string command_case(const CommandNode& program, const std::string& indent) {
  std::vector<std::string> paths;
  for (const CommandNode* command : flattened(program)) {
    for (const CommandNode& below : command->subcommands)
      paths.push_back('"' + command->path + '/' + name_of(below) + '"');
  }
  return indent + "case \"$command/$word\" in\n" + indent + "  " + joined(paths, " | ") + ")\n" +
         indent + "    command=\"${command:+$command }$word\" ;;\n" + indent + "esac\n";
}

/// The line of a script that offers these words.
using ChoiceLine = std::function<std::string(const std::string& words)>;

/// A case that answers where the word before the cursor is an option with a value: one of a list,
/// else `files`.
std::string value_case(const CommandNode& program, const ChoiceLine& choose,
                       const std::string& files) {
  std::string text = "  case \"$command $previous\" in\n";
  std::vector<std::string> free;
  std::map<std::string, std::vector<std::string>> options_with;  // by the words that they take
  for (const CommandNode* command : flattened(program)) {
    for (const CommandArgument& option : command->options) {
      if (!option.takes_value) continue;
      if (option.choices.empty())
        free.push_back(patterns(*command, option));
      else
        options_with[joined(option.choices)].push_back(patterns(*command, option));
    }
  }
  for (const auto& [words, options] : options_with)
    text += "    " + joined(options, " | ") + ") " + choose(words) + "; return ;;\n";
  return text + "    " + joined(free, " | ") + ") " + files + "; return ;;\n  esac\n";
}

/// Words that may stand where no value is due, options apart: subcommands, choices.
std::vector<std::string> words_of(const CommandNode& command) {
  std::vector<std::string> words = choices_of(command);
  for (const CommandNode& below : command.subcommands) words.push_back(name_of(below));
  return words;
}

std::vector<std::string> options_of(const CommandNode& command) {
  std::vector<std::string> names;
  for (const CommandArgument& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// `name:what it does` for zsh's _describe, which reads a backslash before colons of a name.
std::string described(const std::string& name, const std::string& description) {
  std::string escaped;
  for (const char c : name) escaped += c == ':' ? "\\:" : std::string(1, c);
  return shell_quoted(escaped + ":" + description);
}

std::vector<std::string> described_words(const CommandNode& command) {
  std::vector<std::string> words;
  for (const std::string& choice : choices_of(command)) words.push_back(shell_quoted(choice));
  for (const CommandNode& below : command.subcommands)
    words.push_back(described(name_of(below), below.description));
  for (const CommandArgument& option : command.options) {
    for (const std::string& name : option.names)
      words.push_back(described(name, option.description));
  }
  return words;
}

/// `complete` line of fish for `arguments`, where exactly the words of `command` have been given.
std::string fish_line(const CommandNode& command, const std::string& arguments,
                      const std::string& description) {
  std::string line = "complete -c tessera -n '__tessera_at \"" + command.path + "\"' " + arguments;
  if (!description.empty()) {
    std::string escaped;
    for (const char c : description) {
      if (c == '\'' || c == '\\') escaped += '\\';
      escaped += c;
    }
    line += " -d '" + escaped + "'";
  }
  return line + "\n";
}

std::string fish_option(const CommandNode& command, const CommandArgument& option) {
  std::string arguments;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    arguments += (is_long ? "-l " : "-s ") + name.substr(is_long ? 2 : 1) + " ";
  }
  if (!option.choices.empty())
    arguments += "-x -a '" + joined(option.choices) + "'";
  else if (option.takes_value)
    arguments += "-r -F";
  return fish_line(command, arguments, option.description);
}

void add_words(std::vector<CommandArgument>& arguments, const CompletionWords& words) {
  for (CommandArgument& argument : arguments) {
    const auto found = words.find(argument.value_name);
    if (argument.choices.empty() && found != words.end()) argument.choices = found->second;
  }
}

}  // namespace

CommandNode with_words(CommandNode program, const CompletionWords& words) {
  add_words(program.options, words);
  add_words(program.positionals, words);
  for (CommandNode& below : program.subcommands) below = with_words(std::move(below), words);
  return program;
}

std::string bash_completion(const CommandNode& program) {
  std::string text =
      "# Completion of tessera for bash. Made by: tessera completion bash\n"
      "_tessera() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local command= word words= options=\n"
      "  # bash takes --option=value as three words.\n"
      "  if [[ $current == \"=\" ]]; then current=\n"
      "  elif [[ $previous == \"=\" ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n";
  text += command_case(program, "    ") + "  done\n";
  text += value_case(
      program,
      [](const std::string& words) {
        const bool go_on = words.ends_with('=');
        return "COMPREPLY=($(compgen -W " + shell_quoted(words) + " -- \"$current\"))" +
               (go_on ? "; compopt -o nospace 2>/dev/null" : "");
      },
      "COMPREPLY=()");
  text += "  case $command in\n";
  for (const CommandNode* command : flattened(program))
    text += "    " + shell_quoted(command->path) +
            ") words=" + shell_quoted(joined(words_of(*command))) +
            " options=" + shell_quoted(joined(options_of(*command))) + " ;;\n";
  return text +
         "  esac\n"
         "  if [[ $current == -* ]]; then words=$options; fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _tessera tessera ./tessera\n";
}

std::string zsh_completion(const CommandNode& program) {
  std::string text =
      "#compdef tessera\n"
      "# Completion of tessera for zsh. Made by: tessera completion zsh\n"
      "_tessera() {\n"
      "  local command= word previous=$words[CURRENT-1]\n"
      "  local -a entries\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n";
  text += command_case(program, "    ") + "  done\n";
  text += value_case(
      program,
      [](const std::string& words) {
        return std::string(words.ends_with('=') ? "compadd -S '' -- " : "compadd -- ") + words;
      },
      "_files");
  text += "  case $command in\n";
  for (const CommandNode* command : flattened(program))
    text += "    " + shell_quoted(command->path) + ") entries=(" +
            joined(described_words(*command)) + ") ;;\n";
  return text +
         "  esac\n"
         "  _describe tessera entries\n"
         "  [[ $PREFIX == -* ]] || _files\n"
         "}\n"
         "if [[ $funcstack[1] == _tessera ]]; then _tessera \"$@\"; else compdef _tessera tessera; "
         "fi\n";
}

std::string fish_completion(const CommandNode& program) {
  std::string text =
      "# Completion of tessera for fish. Made by: tessera completion fish\n"
      "function __tessera_at\n"
      "  set -l command\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$command/$word\"\n"
      "      case";
  for (const CommandNode* command : flattened(program)) {
    for (const CommandNode& below : command->subcommands)
      text += " '" + command->path + "/" + name_of(below) + "'";
  }
  text +=
      "\n"
      "        set command (string trim \"$command $word\")\n"
      "    end\n"
      "  end\n"
      "  test \"$command\" = \"$argv[1]\"\n"
      "end\n";
  for (const CommandNode* command : flattened(program)) {
    for (const CommandNode& below : command->subcommands)
      text += fish_line(*command, "-f -a " + name_of(below), below.description);
    if (const auto choices = choices_of(*command); !choices.empty())
      text += fish_line(*command, "-f -a '" + joined(choices) + "'", "");
    for (const CommandArgument& option : command->options) text += fish_option(*command, option);
  }
  return text;
}

}  // namespace tessera
