#include "sim/import/job/shell_words.h"

#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/import/job/shell_arithmetic.h"

namespace tessera {
namespace {

constexpr std::size_t kMostExpanded = std::size_t{1} << 20;  // characters
constexpr int kMostNesting = 16;

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}

bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// Length of the name at the start of `text`; 0 where there is none.
std::size_t name_length(std::string_view text) {
  if (text.empty() || !is_name_start(text[0])) return 0;
  std::size_t length = 1;
  while (length < text.size() && is_name_part(text[length])) ++length;
  return length;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& name, ShellScript& script)
      : text_(text), name_(name), script_(script) {}

  void read() {
    while (!at_end()) read_command();
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }

  [[noreturn]] void fail(int line, const std::string& what, const std::string& hint) const {
    throw InputError({name_ + ":" + std::to_string(line), what, hint});
  }

  bool ends_command() const {
    const char c = peek();
    return c == '\n' || c == ';' || c == '&' || c == '|' || c == ')';
  }

  void skip_blanks() {
    while (!at_end()) {
      if (peek() == '\\' && peek(1) == '\n') {
        take();
        take();
      } else if (peek() != '\n' && std::isspace(static_cast<unsigned char>(peek()))) {
        take();
      } else if (peek() == '#') {
        while (!at_end() && peek() != '\n') take();
      } else {
        return;
      }
    }
  }

  void read_command() {
    std::vector<ShellWord> words;
    skip_blanks();
    while (!at_end() && !ends_command()) {
      if (!(words.empty() && read_assignment())) read_word(words);
      skip_blanks();
    }
    if (!at_end()) take();
    if (!words.empty()) script_.commands.push_back(std::move(words));
  }

  /// `NAME=value`, `NAME=(values)`, `NAME+=...`, behind `export` and the like.
  bool read_assignment() {
    for (const std::string_view prefix : {"export ", "local ", "readonly ", "declare "}) {
      if (text_.substr(at_).starts_with(prefix)) at_ += prefix.size();
    }
    const std::size_t length = name_length(text_.substr(at_));
    const bool appends = peek(length) == '+' && peek(length + 1) == '=';
    if (length == 0 || !(peek(length) == '=' || appends)) return false;
    const std::string variable(text_.substr(at_, length));
    at_ += length + (appends ? 2 : 1);
    std::vector<std::string> values = peek() == '(' ? read_array() : read_value();
    std::vector<std::string>& stored = script_.variables[variable];
    if (!appends) stored.clear();
    stored.insert(stored.end(), values.begin(), values.end());
    count(joined(stored));
    return true;
  }

  std::vector<std::string> read_value() {
    std::vector<ShellWord> words;
    if (!at_end() && !std::isspace(static_cast<unsigned char>(peek())) && !ends_command())
      read_word(words, false);
    std::vector<std::string> texts;
    for (const ShellWord& word : words) texts.push_back(word.text);
    return {joined(texts)};
  }

  std::vector<std::string> read_array() {
    const int start = line_;
    std::vector<ShellWord> words;
    take();
    for (;;) {
      skip_blanks();
      if (at_end()) fail(start, "a list of values does not end", "close it with ')'");
      if (peek() == ')') break;
      if (ends_command())
        take();
      else
        read_word(words);
    }
    take();
    std::vector<std::string> texts;
    for (const ShellWord& word : words) texts.push_back(word.text);
    return texts;
  }

  /// Appends the word at the cursor to `words`, or the words that it becomes. `splits`: whether
  /// what expands outside quotes is split at blanks.
  void read_word(std::vector<ShellWord>& words, bool splits = true) {
    ShellWord word{.text = {}, .line = line_};
    bool there = false;
    const auto end_word = [&] {
      if (there) words.push_back(std::exchange(word, {.text = {}, .line = line_}));
      there = false;
    };
    while (!at_end() && !std::isspace(static_cast<unsigned char>(peek())) && !ends_command()) {
      const char c = peek();
      if (c == '\'' || c == '"') {
        there = read_quoted(word.text, words) || there;
      } else if (c == '\\') {
        take();
        if (!at_end()) word.text += take();
        there = true;
      } else if (c == '$' || c == '`') {
        const std::string expanded = joined(read_expansion());
        for (const char part : expanded) {
          const bool blank = splits && std::isspace(static_cast<unsigned char>(part));
          if (blank)
            end_word();
          else
            word.text += part, there = true;
        }
      } else {
        word.text += take();
        there = true;
      }
    }
    end_word();
  }

  /// A part in quotes, appended to `text`. An array in double quotes gives a word per value: all
  /// but the last go to `words`. False where such an array is empty.
  bool read_quoted(std::string& text, std::vector<ShellWord>& words) {
    const int start = line_;
    const char quote = take();
    bool there = true;
    while (!at_end() && peek() != quote) {
      if (quote == '"' && peek() == '\\' && !at_end()) {
        take();
        if (!at_end() && peek() == '\n')
          take();
        else if (!at_end())
          text += take();
      } else if (quote == '"' && (peek() == '$' || peek() == '`')) {
        const std::vector<std::string> values = read_expansion();
        for (std::size_t i = 0; i < values.size(); ++i) {
          text += values[i];
          if (i + 1 < values.size()) words.push_back({std::exchange(text, {}), line_});
        }
        there = !values.empty();
      } else {
        text += take();
      }
    }
    if (at_end()) fail(start, "a text in quotes does not end", "close it");
    take();
    return there;
  }

  std::vector<std::string> read_expansion() {
    if (text_.substr(at_).starts_with("$((")) return {read_arithmetic()};
    if (peek() == '`' || text_.substr(at_).starts_with("$(")) return {read_substitution()};
    if (text_.substr(at_).starts_with("${")) return read_braces();
    const std::size_t length = name_length(text_.substr(at_ + 1));
    if (length == 0) {
      const std::size_t taken = std::isdigit(static_cast<unsigned char>(peek(1))) || peek(1) == '@';
      return {take_text(1 + taken)};
    }
    const std::string original = take_text(1 + length);
    return value_of(original.substr(1)).value_or(std::vector<std::string>{original});
  }

  std::string take_text(std::size_t length) {
    std::string taken;
    for (std::size_t i = 0; i < length && !at_end(); ++i) taken += take();
    return taken;
  }

  /// The value of a variable; nothing where none is set.
  std::optional<std::vector<std::string>> value_of(const std::string& variable) {
    const auto found = script_.variables.find(variable);
    if (found == script_.variables.end()) return std::nullopt;
    count(joined(found->second));
    return found->second;
  }

  /// Texts that use each other grow with every use.
  void count(const std::string& text) {
    expanded_ += text.size();
    if (expanded_ > kMostExpanded)
      fail(line_, "variables expand to more than 1 MiB", "give the arguments themselves");
  }

  /// Text up to the bracket that closes the one at the cursor, which may follow `skip` characters.
  std::string bracketed(char open, char close) {
    const int start = line_;
    int depth = 0;
    std::string inside;
    for (;;) {
      if (at_end()) fail(start, std::string("a '") + open + "' is not closed", "close it");
      const char c = take();
      if (c == open && ++depth == 1) continue;
      if (c == close && --depth == 0) return inside;
      inside += c;
    }
  }

  std::string read_arithmetic() {
    take();
    const std::string inside = bracketed('(', ')');  // "(...)", its own brackets included
    const auto value = shell_arithmetic(inside, [this](const std::string& variable) {
      return joined(value_of(variable).value_or(std::vector<std::string>{}));
    });
    return value ? std::to_string(*value) : "$(" + inside + ")";
  }

  std::string read_substitution() {
    if (peek() == '$') {
      take();
      return "$(" + bracketed('(', ')') + ")";
    }
    const int start = line_;
    std::string text(1, take());
    while (!at_end() && peek() != '`') text += take();
    if (at_end()) fail(start, "a command in backquotes does not end", "close it");
    return text + take();
  }

  /// ${NAME}, ${NAME[@]}, ${NAME:-default}, ${NAME-default}, ${NAME:=default}.
  std::vector<std::string> read_braces() {
    take();
    const std::string inside = bracketed('{', '}');
    const std::size_t length = name_length(inside);
    const std::string variable = inside.substr(0, length);
    const std::string_view rest = std::string_view(inside).substr(length);
    const bool is_plain = rest.empty() || rest == "[@]" || rest == "[*]";
    const auto value = value_of(variable);
    if (is_plain && value) return *value;
    for (const std::string_view mark : {":-", ":=", "-", "="}) {
      if (length == 0 || !rest.starts_with(mark)) continue;
      if (value && !joined(*value).empty()) return *value;
      return {expanded(std::string(rest.substr(mark.size())))};
    }
    return {"${" + inside + "}"};
  }

  /// A default value, which may hold variables itself.
  std::string expanded(const std::string& text) {
    if (++nesting_ > kMostNesting) fail(line_, "default values nest too deeply", "simplify them");
    const bool has_quotes = text.starts_with('"') || text.starts_with('\'');
    ShellReader reader(has_quotes ? text : "\"" + text + "\"", line_, *this);
    const std::string value = joined(reader.read_value());
    expanded_ = reader.expanded_;
    --nesting_;
    return value;
  }

  ShellReader(std::string text, int line, const ShellReader& outer)
      : own_(std::move(text)),
        text_(own_),
        name_(outer.name_),
        script_(outer.script_),
        line_(line),
        nesting_(outer.nesting_),
        expanded_(outer.expanded_) {}

  std::string own_;
  std::string_view text_;
  const std::string& name_;
  ShellScript& script_;
  std::size_t at_ = 0;
  int line_ = 1;
  int nesting_ = 0;
  std::size_t expanded_ = 0;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& name,
                              ShellVariables variables) {
  ShellScript script{.commands = {}, .variables = std::move(variables)};
  ShellReader(text, name, script).read();
  return script;
}

}  // namespace tessera
