// What commands of a script do, as far as they are the shell's own; the others are collected.
#include <algorithm>
#include <iterator>

#include "app/import/shell/shell_reader.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr int kMostDepth = 16;  // functions and evaluated texts in each other

bool is_shell(const std::string& word) {
  for (const std::string_view shell : {"bash", "sh", "zsh", "dash"}) {
    const bool is_path = word.size() > shell.size() && word.ends_with(shell) &&
                         word[word.size() - shell.size() - 1] == '/';
    if (word == shell || is_path) return true;
  }
  return false;
}

/// A command in one word: the argument of bash -c, ssh or eval.
bool holds_command(const std::string& word) {
  return word.find(".py ") != std::string::npos && word.find(" --") != std::string::npos;
}

}  // namespace

ShellStatus ShellReader::run(std::vector<ShellWord> words, const Redirects& redirects) {
  std::vector<std::string> texts = texts_of(words);
  const auto function = state_.functions.find(texts.front());
  if (function != state_.functions.end()) {
    texts.erase(texts.begin());
    const ShellFunction copy = function->second;
    call(copy, std::move(texts));
    return status_ == ShellStatus::unknown ? ShellStatus::program : status_;
  }
  bool known = true;
  if (texts.front() == "read") {
    run_read(texts, redirects);
    return redirects.has_here ? ShellStatus::yes : ShellStatus::program;
  }
  const ShellStatus status = run_builtin(texts, known);
  if (known) return status;
  keep_output(texts, redirects);
  const bool shell_reads = is_shell(texts.back()) && redirects.has_here;
  if (shell_reads) {
    ++state_.depth;
    ShellReader(redirects.here, words.front().line + 1, state_).read_all();
    --state_.depth;
  } else if (!run_inner(words)) {
    collect(std::move(words));
  }
  return ShellStatus::program;
}

ShellStatus ShellReader::run_builtin(const std::vector<std::string>& words, bool& known) {
  const std::string& command = words.front();
  if (command == "true" || command == ":") return ShellStatus::yes;
  if (command == "false") return ShellStatus::no;
  if (command == "exit" || command == "return" || command == "break" || command == "continue") {
    halt(command);
  } else if (command == "unset") {
    for (const std::string& word : words) {
      if (!state_.settings.defined.contains(word)) state_.script.variables.erase(word);
    }
  } else if (command == "shift") {
    const std::size_t places =
        words.size() > 1 && words[1].size() == 1 && words[1] >= "0" && words[1] <= "9"
            ? static_cast<std::size_t>(words[1][0] - '0')
            : 1;
    state_.arguments.erase(state_.arguments.begin(),
                           state_.arguments.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                          places, state_.arguments.size())));
  } else if (command == "set") {
    run_set(words);
  } else if (command == "source" || command == ".") {
    if (words.size() > 1) state_.script.sourced.push_back(words[1]);
  } else if (command == "getopts") {
    return state_.arguments.empty() ? ShellStatus::no : ShellStatus::program;
  } else if (command == "eval") {
    if (++state_.depth > kMostDepth) fail(line_, "eval nests too deeply", "simplify it");
    const std::string text =
        joined(std::vector<std::string>(std::next(words.begin()), words.end()));
    count(text);
    ShellReader(text, line_, state_).read_all();
    --state_.depth;
  } else {
    known = false;
  }
  return ShellStatus::yes;
}

void ShellReader::halt(const std::string& word) {
  if (word == "exit") {
    state_.halt = ShellHalt::script;
    if (state_.conditions.empty()) state_.script.ended = place(line_);
  } else if (word == "return") {
    state_.halt = ShellHalt::function;
  } else {
    state_.halt = word == "break" ? ShellHalt::loop : ShellHalt::next_round;
  }
}

/// set -- a b: the arguments; set -x and the like change nothing here.
void ShellReader::run_set(const std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) state_.arguments.assign(std::next(dashes), words.end());
}

/// read A B: from a here-string, else what only the run knows.
void ShellReader::run_read(const std::vector<std::string>& words, const Redirects& redirects) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    if (word != "read" && name_length(word) == word.size()) names.push_back(word);
  }
  const bool known = redirects.has_here && !is_unknown(redirects.here);
  const std::vector<std::string> values =
      known ? shell_words(redirects.here) : std::vector<std::string>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (known)
      state_.assign(names[i], {i < values.size() ? values[i] : ""});
    else
      state_.make_unknown(names[i], "what is read at " + place(line_));
  }
}

void ShellReader::call(const ShellFunction& function, std::vector<std::string> arguments) {
  if (++state_.depth > kMostDepth)
    fail(line_, "functions nest too deeply", "give the arguments themselves");
  std::swap(arguments, state_.arguments);
  ShellReader inner(function.body, function.line, state_);
  status_ = inner.read_all();
  std::swap(arguments, state_.arguments);
  if (state_.halt == ShellHalt::function) state_.halt = ShellHalt::none;
  --state_.depth;
}

/// A command within a word ("bash -c", ssh, docker exec): its words go behind those ahead of it.
bool ShellReader::run_inner(const std::vector<ShellWord>& words) {
  if (state_.depth >= kMostDepth) return false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_text = i > 1 && words[i - 1].text == "-c" && is_shell(words[i - 2].text);
    const bool prints = words.front().text == "echo" || words.front().text == "printf";
    if (prints || !(is_text || holds_command(words[i].text))) continue;
    const std::size_t before = state_.script.commands.size();
    count(words[i].text);
    ++state_.depth;
    ShellReader(words[i].text, words[i].line, state_).read_all();
    --state_.depth;
    std::vector<ShellCommand>& commands = state_.script.commands;
    for (std::size_t c = before; c < commands.size(); ++c)
      commands[c].words.insert(commands[c].words.begin(), words.begin(),
                               words.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

void ShellReader::collect(std::vector<ShellWord> words) {
  std::string condition;
  for (const std::string& one : state_.conditions)
    condition += (condition.empty() ? "" : ", ") + one;
  const auto is_same = [&](const ShellCommand& other) {
    return other.condition == condition &&
           std::equal(words.begin(), words.end(), other.words.begin(), other.words.end(),
                      [](const ShellWord& a, const ShellWord& b) { return a.text == b.text; });
  };
  for (const ShellWord& word : words) count(word.text);
  std::vector<ShellCommand>& commands = state_.script.commands;
  if (!commands.empty() && is_same(commands.back())) return;
  commands.push_back({std::move(words), condition});
}

/// Files that cat, tee and echo write.
void ShellReader::keep_output(const std::vector<std::string>& words, const Redirects& redirects) {
  const std::string& command = words.front();
  if (command == "tee" && redirects.has_here && words.size() > 1)
    state_.script.files[words.back()] = redirects.here;
  if (redirects.output.empty()) return;
  if (command == "cat" && redirects.has_here)
    state_.script.files[redirects.output] = redirects.here;
  if (command == "echo")
    state_.script.files[redirects.output] =
        joined(std::vector<std::string>(std::next(words.begin()), words.end()));
}

}  // namespace tessera
