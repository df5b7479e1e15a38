// Commands of a script, one after the other.
#include "app/import/shell/shell_reader.h"

#include <algorithm>

#include "app/import/shell/shell_arithmetic.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::size_t kMostExpanded = std::size_t{1} << 20;  // characters
constexpr int kMostSteps = 20000;                            // commands
constexpr int kMostBlocksInBlocks = 64;                      // blocks

}  // namespace

char ShellReader::take() {
  const char c = text_[at_++];
  if (c != '\n') return c;
  ++line_;
  if (after_heredocs_ > at_) {
    line_ += static_cast<int>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                   text_.begin() + static_cast<std::ptrdiff_t>(after_heredocs_), '\n'));
    at_ = after_heredocs_;
  }
  after_heredocs_ = 0;
  return c;
}

std::string ShellReader::take_text(std::size_t length) {
  std::string taken;
  for (std::size_t i = 0; i < length && !at_end(); ++i) taken += take();
  return taken;
}

void ShellReader::fail(int line, const std::string& what, const std::string& hint) const {
  throw InputError({place(line), what, hint});
}

/// Texts that use each other grow with every use.
void ShellReader::count(const std::string& text) {
  state_.expanded += text.size();
  if (state_.expanded > kMostExpanded)
    fail(line_, "variables expand to more than 1 MiB", "give the arguments themselves");
}

std::string ShellReader::reason(int line) const {
  const std::vector<std::string> names = unknown_variables(state_.doubt);
  std::string what = names.empty() ? state_.doubt : "";
  for (const std::string& name : names) what += (what.empty() ? "$" : ", $") + name;
  return what + " (" + place(line) + ")";
}

bool ShellReader::ends_command() const {
  const char c = peek();
  return c == '\n' || c == ';' || (c == '&' && peek(1) != '>') || c == '|' || c == ')';
}

void ShellReader::skip_blanks() {
  while (!at_end()) {
    if (peek() == '\\' && peek(1) == '\n') {
      take();
      take();
    } else if (peek() == '\\' && peek(1) == '\r' && peek(2) == '\n') {
      take_text(3);
    } else if (peek() != '\n' && is_blank()) {
      take();
    } else if (peek() == '#') {
      while (!at_end() && peek() != '\n') take();
    } else {
      return;
    }
  }
}

/// Blanks, line ends and ';', but not ";;", which ends a branch of case.
void ShellReader::skip_separators() {
  for (skip_blanks(); !at_end(); skip_blanks()) {
    const bool separates = peek() == '\n' || (peek() == ';' && peek(1) != ';') ||
                           (peek() == '&' && peek(1) != '>' && peek(1) != '&');
    if (!separates) return;
    take();
  }
}

bool ShellReader::word_ahead(std::string_view word) const {
  if (!starts(word)) return false;
  const char next = peek(word.size());
  const bool is_symbol = word == ";;" || word == ")";
  return is_symbol || next == '\0' || std::isspace(static_cast<unsigned char>(next)) ||
         next == ';' || next == '&' || next == '|' || next == ')' || next == '(' || next == '<' ||
         next == '>';
}

/// Commands up to one of `stops`, which is not taken; without stops, up to the end.
void ShellReader::read_list(std::initializer_list<std::string_view> stops, const char* block) {
  const int start = line_;
  if (++nesting_ > kMostBlocksInBlocks) fail(line_, "blocks nest too deeply", "simplify them");
  for (;;) {
    skip_separators();
    const bool stops_here = std::any_of(stops.begin(), stops.end(),
                                        [this](std::string_view stop) { return word_ahead(stop); });
    if (stops_here) break;
    if (at_end() && stops.size() > 0) fail(start, std::string(block) + " does not end", "close it");
    if (at_end()) break;
    const std::size_t before = at_;
    read_chain();
    if (at_ == before) take();
  }
  --nesting_;
}

ShellStatus ShellReader::read_all() {
  read_list({}, "");
  return status_;
}

/// Pipelines behind each other by && and ||.
void ShellReader::read_chain() {
  ShellStatus status = read_pipeline();
  for (skip_blanks(); starts("&&") || starts("||"); skip_blanks()) {
    const ShellStatus wanted = peek() == '&' ? ShellStatus::yes : ShellStatus::no;
    take_text(2);
    for (skip_blanks(); peek() == '\n'; skip_blanks()) take();
    if (status == ShellStatus::program) status = ShellStatus::yes;  // as programs should end
    if (runs() && status == ShellStatus::unknown) {
      ShellBranches branches(state_);
      branches.follow(reason(line_), [&] { read_pipeline(); });
      branches.follow(reason(line_), [] {});
      branches.join();
    } else if (status == wanted) {
      status = read_pipeline();
    } else {
      skip([this] { read_pipeline(); });
    }
  }
  status_ = status;
}

ShellStatus ShellReader::read_pipeline() {
  skip_blanks();
  const bool inverts = word_ahead("!");
  if (inverts) take();
  ShellStatus status = read_command();
  for (skip_blanks(); peek() == '|' && peek(1) != '|'; skip_blanks()) {
    take_text(peek(1) == '&' ? 2 : 1);
    skip_separators();
    read_command();
    status = ShellStatus::program;
  }
  if (!inverts) return status;
  if (status == ShellStatus::yes) return ShellStatus::no;
  return status == ShellStatus::no ? ShellStatus::yes : status;
}

ShellStatus ShellReader::read_command() {
  skip_blanks();
  if (runs() && ++state_.steps > kMostSteps)
    fail(line_, "the script runs more than 20000 commands", "give the arguments themselves");
  if (starts("((")) return read_arithmetic_command();
  if (word_ahead("[[") || word_ahead("[") || word_ahead("test")) return read_test();
  const bool is_block = word_ahead("if") || word_ahead("case") || word_ahead("for") ||
                        word_ahead("while") || word_ahead("until") || word_ahead("select") ||
                        word_ahead("{") || peek() == '(';
  if (!is_block && !read_function()) return read_simple_command();
  if (!is_block) return ShellStatus::yes;
  if (word_ahead("if"))
    read_if();
  else if (word_ahead("case"))
    read_case();
  else if (word_ahead("for") || word_ahead("select"))
    read_for();
  else if (word_ahead("while") || word_ahead("until"))
    read_while(word_ahead("until"));
  else
    read_subshell();
  Redirects redirects;
  for (skip_blanks(); !at_end() && !ends_command(); skip_blanks()) {
    const std::size_t before = at_;
    read_redirect(redirects);
    if (at_ == before) break;
  }
  return ShellStatus::yes;
}

/// NAME() { ... } or function NAME { ... }.
bool ShellReader::read_function() {
  const bool has_keyword = word_ahead("function");
  std::size_t start = at_ + (has_keyword ? 8 : 0);
  while (has_keyword && start < text_.size() && text_[start] == ' ') ++start;
  std::size_t end = start;
  while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) ||
                                text_[end] == '_' || text_[end] == '-' || text_[end] == '.'))
    ++end;
  const std::string name(text_.substr(start, end - start));
  while (end < text_.size() && text_[end] == ' ') ++end;
  const bool has_brackets = text_.substr(end).starts_with("()");
  if (name.empty() || !(has_keyword || has_brackets)) return false;
  take_text(end + (has_brackets ? 2 : 0) - at_);
  skip_separators();
  if (peek() != '{' && peek() != '(') return true;
  const int line = line_;
  const std::size_t from = at_;
  skip([this] { read_subshell(); });
  if (runs()) state_.functions[name] = {std::string(text_.substr(from + 1, at_ - from - 2)), line};
  return true;
}

ShellStatus ShellReader::read_arithmetic_command() {
  const int line = line_;
  const std::string inside = bracketed('(', ')');  // "(...)", its own brackets included
  if (!runs()) return ShellStatus::yes;
  const auto value = shell_arithmetic(inside, [this](const std::string& variable) {
    return joined(state_.value_of(variable).value_or(std::vector<std::string>{}));
  });
  if (value) return *value != 0 ? ShellStatus::yes : ShellStatus::no;
  state_.doubt = "$(" + inside + ")";
  const bool assigns = inside.find('=') != std::string::npos ||
                       inside.find("++") != std::string::npos ||
                       inside.find("--") != std::string::npos;
  if (assigns) {
    for (const std::string& name : unknown_variables(state_.doubt))
      state_.make_unknown(name, "((" + inside + ")) (" + place(line) + ")");
  }
  return assigns ? ShellStatus::program : ShellStatus::unknown;
}

/// test, [ and [[, in which && and || join conditions.
ShellStatus ShellReader::read_test() {
  const bool doubled = starts("[[");
  const std::string end = doubled ? "]]" : starts("[") ? "]" : "";
  const int start = line_;
  take_text(doubled ? 2 : starts("[") ? 1 : 4);
  std::vector<ShellWord> words;
  for (;;) {
    skip_blanks();
    if (doubled && peek() == '\n') take(), skip_blanks();
    if (!end.empty() && word_ahead(end)) break;
    if (at_end() || (!doubled && ends_command())) break;
    if (doubled && (starts("&&") || starts("||"))) {
      words.push_back({take_text(2), line_});
    } else if (doubled && (peek() == '(' || peek() == ')' || peek() == '<' || peek() == '>')) {
      words.push_back({take_text(1), line_});
    } else if (!words.empty() && words.back().text == "=~") {
      std::string pattern;
      while (!at_end() && !is_blank()) pattern += take();
      words.push_back({"$(" + pattern + ")", line_});  // not decided
    } else {
      const std::size_t before = at_;
      read_word(words, !doubled);
      if (at_ == before) take();
    }
  }
  if (!end.empty() && !word_ahead(end)) fail(start, "a condition does not end", "close it");
  take_text(end.size());
  if (!runs()) return ShellStatus::yes;
  std::vector<std::string> texts;
  for (const ShellWord& word : words) texts.push_back(word.text);
  return shell_test(texts, state_);
}

ShellStatus ShellReader::read_simple_command() {
  std::vector<ShellWord> words;
  Redirects redirects;
  bool declares = false;
  bool assigned = false;
  for (skip_blanks(); !at_end() && !ends_command(); skip_blanks()) {
    const std::size_t before = at_;
    if ((words.empty() || declares) && read_assignment()) {
      assigned = true;
      continue;
    }
    read_redirect(redirects);
    if (at_ != before) continue;
    read_word(words);
    if (at_ == before) take();
    const std::string first = words.empty() ? "" : words.front().text;
    declares = first == "export" || first == "local" || first == "readonly" || first == "declare" ||
               first == "typeset";
  }
  if (!runs() || declares) return ShellStatus::yes;
  if (words.empty()) return assigned ? ShellStatus::yes : status_;
  return run(std::move(words), redirects);
}

/// "> file", "2>&1", "&> file", "< file", "<<END", "<<< word" at the cursor.
void ShellReader::read_redirect(Redirects& redirects) {
  std::size_t digits = 0;
  while (std::isdigit(static_cast<unsigned char>(peek(digits)))) ++digits;
  const bool both = starts("&>");
  if (both) digits = 1;
  const char direction = peek(digits);
  if ((direction != '<' && direction != '>') || peek(digits + 1) == '(') return;
  take_text(digits + 1);
  const bool here = direction == '<' && peek() == '<';
  const bool here_word = here && peek(1) == '<';
  std::string op;
  while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|' || peek() == '-')
    op += take();
  while (!at_end() && peek() != '\n' && is_blank()) take();
  const bool quoted = peek() == '\'' || peek() == '"' || peek() == '\\';
  std::vector<ShellWord> target;
  if (!at_end() && !ends_command()) read_word(target, false);
  const std::string word = target.empty() ? "" : target.front().text;
  if (here_word) redirects.here = word;
  if (here && !here_word) redirects.here = read_heredoc(op == "<-", word, !quoted);
  redirects.has_here = redirects.has_here || here;
  const bool is_output = direction == '>' && (digits == 0 || both) && op.find('&') == op.npos;
  if (is_output) redirects.output = word;
}

/// The lines behind this one, up to `end`.
std::string ShellReader::read_heredoc(bool strips, const std::string& end, bool expands) {
  std::size_t from = after_heredocs_ > at_ ? after_heredocs_ : text_.find('\n', at_);
  std::string body;
  if (from == std::string_view::npos) return body;
  if (from != after_heredocs_) ++from;
  while (from < text_.size()) {
    const std::size_t stop = std::min(text_.find('\n', from), text_.size());
    std::string line(text_.substr(from, stop - from));
    from = std::min(stop + 1, text_.size());
    if (strips) line.erase(0, line.find_first_not_of('\t'));
    if (line == end) break;
    body += line + "\n";
  }
  after_heredocs_ = from;
  if (!expands || !runs()) return body;
  return ShellReader(body, line_ + 1, state_).read_as_text();
}

}  // namespace tessera
