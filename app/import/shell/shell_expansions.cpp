// Words of a script: quotes, variables, arithmetic, $(commands).
#include <algorithm>
#include <iterator>
#include <utility>

#include "app/import/shell/shell_arithmetic.h"
#include "app/import/shell/shell_reader.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr int kMostDefaultsInDefaults = 16;  // default values in each other

}  // namespace

std::string ShellReader::read_as_word() {
  return joined(read_value());
}

std::string ShellReader::read_as_text() {
  std::string text;
  while (!at_end()) {
    if (peek() == '\\' && (peek(1) == '$' || peek(1) == '\\' || peek(1) == '`')) {
      take();
      text += take();
    } else if (peek() == '$' || peek() == '`') {
      text += joined(read_expansion().values);
    } else {
      text += take();
    }
  }
  return text;
}

std::vector<std::string> ShellReader::read_as_words() {
  std::vector<ShellWord> words;
  for (skip_blanks(); !at_end(); skip_blanks()) {
    const std::size_t before = at_;
    read_word(words);
    if (at_ == before) take();
  }
  return texts_of(words);
}

/// `NAME=value`, `NAME=(values)`, `NAME[key]=value`, `NAME+=...` at the cursor.
bool ShellReader::read_assignment() {
  std::size_t length = name_length(text_.substr(at_));
  if (length == 0) return false;
  std::string variable(text_.substr(at_, length));
  if (peek(length) == '[') {
    const std::size_t close = text_.find(']', at_);
    if (close == std::string_view::npos ||
        text_.substr(at_, close - at_).find('\n') != std::string_view::npos)
      return false;
    variable +=
        "[" + expanded(std::string(text_.substr(at_ + length + 1, close - at_ - length - 1))) + "]";
    length = close - at_ + 1;
  }
  const bool appends = peek(length) == '+' && peek(length + 1) == '=';
  if (!(peek(length) == '=' || appends)) return false;
  take_text(length + (appends ? 2 : 1));
  const bool is_list = peek() == '(';
  std::vector<std::string> values = is_list ? read_array(variable) : read_value();
  if (!runs()) return true;
  count(joined(values));
  state_.assign(variable, std::move(values), appends, is_list);
  if (const auto stored = state_.value_of(variable); appends && stored) count(joined(*stored));
  return true;
}

std::vector<std::string> ShellReader::read_value() {
  std::vector<ShellWord> words;
  if (!at_end() && !is_blank() && !ends_command()) read_word(words, false);
  return {joined(texts_of(words))};
}

/// Values of a list; `[key]=value` in it is an element of an associative array.
std::vector<std::string> ShellReader::read_array(const std::string& variable) {
  const int start = line_;
  std::vector<ShellWord> words;
  take();
  for (;;) {
    skip_blanks();
    if (at_end()) fail(start, "a list of values does not end", "close it with ')'");
    if (peek() == ')') break;
    const std::size_t before = at_;
    if (!ends_command()) read_word(words);
    if (at_ == before) take();
  }
  take();
  std::vector<std::string> values;
  for (const ShellWord& word : words) {
    const std::size_t close = word.text.find("]=");
    const bool has_key = word.text.starts_with('[') && close != std::string::npos;
    if (!has_key)
      values.push_back(word.text);
    else if (runs())
      state_.assign(variable + word.text.substr(0, close + 1), {word.text.substr(close + 2)});
  }
  return values;
}

/// Appends what an expansion holds to `word`; at blanks, where it `splits`, the word goes to
/// `words` and another one starts. `there`: whether there is one, which it returns for the last.
bool ShellReader::append_expansion(const Expansion& expansion, bool splits, bool there,
                                   ShellWord& word, std::vector<ShellWord>& words) const {
  const bool whole = !splits || !expansion.known;
  int depth = 0;  // within a $(command) that stayed as it is
  there = there || !expansion.known;
  for (const char part : joined(expansion.values)) {
    const bool opens = part == '(' && (depth > 0 || word.text.ends_with('$'));
    depth += opens ? 1 : part == ')' && depth > 0 ? -1 : 0;
    const bool ends = !whole && depth == 0 && std::isspace(static_cast<unsigned char>(part));
    if (ends && there) words.push_back(std::exchange(word, {.text = {}, .line = line_}));
    if (!ends) word.text += part;
    there = !ends;
  }
  return there;
}

/// Appends the word at the cursor to `words`, or the words that it becomes. `splits`: whether
/// what expands outside quotes is split at blanks.
void ShellReader::read_word(std::vector<ShellWord>& words, bool splits) {
  ShellWord word{.text = {}, .line = line_};
  bool there = false;
  while (!at_end() && !is_blank() && !ends_command()) {
    const char c = peek();
    if (c == '\'' || c == '"') {
      there = read_quoted(word.text, words) || there;
    } else if (c == '\\' && peek(1) == '\n') {
      take_text(2);
    } else if (c == '\\') {
      take();
      if (!at_end()) word.text += take();
      there = true;
    } else if (c == '$' && (peek(1) == '\'' || peek(1) == '"')) {
      take();
    } else if (c == '$' || c == '`') {
      there = append_expansion(read_expansion(), splits, there, word, words);
    } else if ((c == '<' || c == '>') && peek(1) == '(' && word.text.empty()) {
      word.text += take();
      word.text += "$(" + bracketed('(', ')') + ")";
      there = true;
    } else if (c == '<' || c == '>') {
      break;
    } else {
      word.text += take();
      there = true;
    }
  }
  if (there) words.push_back(std::move(word));
}

void ShellReader::read_single_quoted(std::string& text) {
  const int start = line_;
  take();
  while (!at_end() && peek() != '\'') text += take();
  if (at_end()) fail(start, "a text in quotes does not end", "close it");
  take();
}

/// A part in quotes, appended to `text`. An array in double quotes gives a word per value: all
/// but the last go to `words`. False where such an array is empty.
bool ShellReader::read_quoted(std::string& text, std::vector<ShellWord>& words) {
  if (peek() == '\'') {
    read_single_quoted(text);
    return true;
  }
  const int start = line_;
  take();
  bool there = true;
  while (!at_end() && peek() != '"') {
    if (peek() == '\\') {
      take();
      const char next = peek();
      const bool escapes = next == '$' || next == '`' || next == '"' || next == '\\';
      if (next != '\n' && !escapes) text += '\\';
      if (!at_end() && next == '\n')
        take();
      else if (!at_end())
        text += take();
    } else if (peek() == '$' || peek() == '`') {
      const Expansion expansion = read_expansion();
      const std::vector<std::string> values =
          expansion.is_one ? std::vector<std::string>{joined(expansion.values)} : expansion.values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        text += values[i];
        if (i + 1 < values.size()) words.push_back({std::exchange(text, {}), line_});
      }
      there = !values.empty() || !text.empty();
    } else {
      text += take();
    }
  }
  if (at_end()) fail(start, "a text in quotes does not end", "close it");
  take();
  return there;
}

/// What `variable` holds, else the text that stands for it.
ShellReader::Expansion ShellReader::value_or_text(const std::string& variable,
                                                  const std::string& original) {
  const auto value = state_.value_of(variable);
  if (!value) return {{original}, false};
  if (runs()) count(joined(*value));
  if (value->size() <= 1) return {*value, true};
  return {{value->front()}, true};  // as shells do with the name of a list
}

ShellReader::Expansion ShellReader::read_expansion() {
  if (starts("$((")) return read_arithmetic();
  if (peek() == '`' || starts("$(")) return read_substitution();
  if (starts("${")) return read_braces();
  const std::size_t length = name_length(text_.substr(at_ + 1));
  if (length > 0) {
    const std::string original = take_text(1 + length);
    return value_or_text(original.substr(1), original);
  }
  const char next = peek(1);
  const bool special = std::isdigit(static_cast<unsigned char>(next)) || next == '@' ||
                       next == '*' || next == '#' || next == '?' || next == '!' || next == '-';
  const std::string original = take_text(special ? 2 : 1);
  if (next == '@' || next == '*') return {state_.arguments, true, next == '*'};
  if (next == '#') return {{std::to_string(state_.arguments.size())}, true};
  if (next == '0') return {{state_.name}, true};
  const std::size_t place = special && next >= '1' && next <= '9' ? std::size_t(next - '0') : 0;
  if (place > 0 && place <= state_.arguments.size()) return {{state_.arguments[place - 1]}, true};
  if (place > 0 && !state_.settings.arguments.empty()) return {{""}, true};
  return {{original}, !special};
}

/// Text up to the bracket that closes the one at the cursor; brackets in quotes do not count.
std::string ShellReader::bracketed(char open, char close) {
  const int start = line_;
  int depth = 0;
  std::string inside;
  for (;;) {
    if (at_end()) fail(start, std::string("a '") + open + "' is not closed", "close it");
    const char c = take();
    if (c == '\\' && !at_end()) {
      inside += c;
      inside += take();
      continue;
    }
    const bool quote = (c == '\'' || c == '"') && text_.find(c, at_) != std::string_view::npos;
    if (quote) {
      inside += c;
      while (!at_end() && peek() != c) inside += take();
    }
    if (c == open && ++depth == 1) continue;
    if (c == close && --depth == 0) return inside;
    inside += quote && !at_end() ? take() : c;
  }
}

ShellReader::Expansion ShellReader::read_arithmetic() {
  take();
  const std::string inside = bracketed('(', ')');  // "(...)", its own brackets included
  if (!runs()) return {{""}, true};
  const auto value = shell_arithmetic(inside, [this](const std::string& variable) {
    return joined(value_or_text(variable, "").values);
  });
  if (value) return {{std::to_string(*value)}, true};
  // Names that are known do not keep the value from being known.
  std::string unknown;
  for (const std::string& name : unknown_variables("$(" + inside + ")")) {
    if (!state_.value_of(name)) unknown += (unknown.empty() ? "" : " ") + name;
  }
  return {{"$((" + (unknown.empty() ? inside : unknown) + "))"}, false};
}

/// $(command) stays as it is, but for echo and expr, which need no other program.
ShellReader::Expansion ShellReader::read_substitution() {
  const int start = line_;
  std::string inside;
  if (peek() == '$') {
    take();
    inside = bracketed('(', ')');
  } else {
    take();
    while (!at_end() && peek() != '`') inside += take();
    if (at_end()) fail(start, "a command in backquotes does not end", "close it");
    take();
  }
  const bool is_one = inside.find_first_of("|;&<>") == std::string::npos;
  const bool answers = is_one && (inside.starts_with("echo ") || inside.starts_with("expr "));
  if (!runs() || !answers) return {{"$(" + inside + ")"}, false};
  if (++nesting_ > kMostDefaultsInDefaults)
    fail(start, "commands nest too deeply", "simplify them");
  std::vector<std::string> words = ShellReader(inside.substr(5), start, state_).read_as_words();
  --nesting_;
  const std::string text = joined(words);
  if (is_unknown(text)) return {{"$(" + inside.substr(0, 5) + text + ")"}, false};
  if (inside.starts_with("echo ")) return {{text}, true};
  const auto value = shell_arithmetic(text, [](const std::string&) { return std::string(); });
  if (!value) return {{"$(" + inside + ")"}, false};
  return {{std::to_string(*value)}, true};
}

/// A default value or a key, which may hold variables itself.
std::string ShellReader::expanded(const std::string& text) {
  if (state_.depth > kMostDefaultsInDefaults || ++nesting_ > kMostDefaultsInDefaults)
    fail(line_, "default values nest too deeply", "simplify them");
  const bool has_quotes = text.starts_with('"') || text.starts_with('\'');
  const std::string quoted = has_quotes ? text : "\"" + text + "\"";
  ++state_.depth;
  ShellReader reader(quoted, line_, state_);
  reader.skipping_ = skipping_;
  const std::string value = reader.read_as_word();
  --state_.depth;
  --nesting_;
  return value;
}

std::vector<std::string> shell_words(const std::string& line) {
  const std::string name = "--args";
  const ShellSettings settings;
  ShellState state{.name = name, .settings = settings};
  return ShellReader(line, 1, state).read_as_words();
}

ShellScript read_shell_script(const std::string& text, const std::string& name,
                              const ShellSettings& settings) {
  ShellState state{.name = name, .settings = settings};
  state.arguments = settings.arguments;
  state.script.variables = settings.preset;
  for (const auto& [variable, values] : settings.defined) state.script.variables[variable] = values;
  ShellReader(text, 1, state).read_all();
  return std::move(state.script);
}

}  // namespace tessera
