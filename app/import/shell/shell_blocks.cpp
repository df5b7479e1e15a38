// Conditions, loops and subshells of a script.
#include <algorithm>

#include "app/import/shell/shell_reader.h"

namespace tessera {
namespace {

constexpr int kMostRounds = 1000;  // of a loop

}  // namespace

/// if ... elif ... else ... fi. An undecided condition leaves the ways behind it open too.
void ShellReader::read_if() {
  ShellBranches branches(state_);
  bool open = runs();  // no way so far is taken for certain
  std::string why;
  for (bool first = true; first || word_ahead("elif"); first = false) {
    take_text(first ? 2 : 4);
    const int line = line_;
    const auto condition = [this] { read_list({"then"}, "a condition"); };
    if (open)
      condition();
    else
      skip(condition);
    const ShellStatus status = open ? status_ : ShellStatus::no;
    take_text(4);
    if (status == ShellStatus::program) state_.doubt = "what a program answers";
    if (status != ShellStatus::yes && status != ShellStatus::no) why = reason(line);
    read_way(branches, status, why);
    if (status == ShellStatus::yes) open = false;
  }
  if (word_ahead("else")) {
    take_text(4);
    read_way(branches, open ? ShellStatus::yes : ShellStatus::no, why);
    open = false;
  }
  take_text(2);
  if (open && branches.any()) branches.follow(why, [] {});
  branches.join();
}

/// One way of an if: over, certain, or one of several.
void ShellReader::read_way(ShellBranches& branches, ShellStatus status, const std::string& why) {
  const auto body = [this] { read_list({"elif", "else", "fi"}, "an if"); };
  if (status == ShellStatus::no)
    skip(body);
  else if (status != ShellStatus::yes || branches.any())
    branches.follow(why, body);
  else
    body();
}

/// One pattern of a case, up to '|' or ')'.
std::string ShellReader::read_pattern() {
  skip_blanks();
  std::vector<ShellWord> words;
  while (!at_end() && !ends_command()) {
    const std::size_t before = at_;
    read_word(words, false);
    skip_blanks();
    if (at_ == before) take();
  }
  return words.empty() ? "" : words.front().text;
}

/// case WORD in PATTERN|PATTERN) ... ;; esac
void ShellReader::read_case() {
  const int line = line_;
  ShellBranches branches(state_);
  bool open = runs();
  take_text(4);
  skip_blanks();
  std::vector<ShellWord> subject;
  read_word(subject, false);
  const std::string word = subject.empty() ? "" : subject.front().text;
  for (skip_separators(); word_ahead("in"); skip_separators()) take_text(2);
  const bool undecided = open && is_unknown(word);
  if (undecided) state_.doubt = word;
  const std::string why = reason(line);
  for (; !word_ahead("esac"); skip_separators()) {
    if (at_end()) fail(line, "a case does not end", "close it with esac");
    if (peek() == '(') take();
    bool matches = false;
    bool any = false;
    for (;;) {
      const std::string pattern = read_pattern();
      matches = matches || matches_glob(word, pattern);
      any = any || pattern == "*";
      if (peek() != '|') break;
      take();
    }
    if (peek() == ')') take();
    const auto body = [this] { read_list({";;", "esac"}, "a branch of case"); };
    if (!open || (!undecided && !matches))
      skip(body);
    else if (undecided)
      branches.follow(why, body);
    else
      body();
    if (undecided ? any : matches) open = false;
    if (starts(";;")) take_text(peek(2) == '&' ? 3 : 2);
  }
  take_text(4);
  if (open && branches.any()) branches.follow(why, [] {});
  branches.join();
}

/// The commands of a loop once, cursor behind "do" before and ahead of "done" behind it.
void ShellReader::read_loop_body(const char* block) {
  read_list({"done"}, block);
}

/// Whether the loop ends here; continue ends here in any case.
bool ShellReader::leaves_loop() {
  if (state_.halt == ShellHalt::next_round) state_.halt = ShellHalt::none;
  const bool leaves = state_.halt != ShellHalt::none;
  if (state_.halt == ShellHalt::loop) state_.halt = ShellHalt::none;
  return leaves;
}

/// for NAME in WORDS; do ... done
void ShellReader::read_for() {
  take_text(word_ahead("for") ? 3 : 6);
  skip_blanks();
  if (starts("((")) return read_counting_for();
  const int line = line_;
  const std::string variable = take_text(name_length(text_.substr(at_)));
  skip_blanks();
  while (!at_end() && peek() == '\n') take(), skip_blanks();
  std::vector<ShellWord> items;
  const bool listed = word_ahead("in");
  if (listed) take_text(2);
  for (skip_blanks(); listed && !at_end() && !ends_command(); skip_blanks()) {
    const std::size_t before = at_;
    read_word(items);
    if (at_ == before) take();
  }
  if (!listed && runs()) {
    for (const std::string& argument : state_.arguments) items.push_back({argument, line});
  }
  skip_separators();
  if (!word_ahead("do")) fail(line, "a loop has no do", "write: for NAME in ...; do ...; done");
  take_text(2);
  const std::size_t body = at_;
  const int body_line = line_;
  const bool runs_here = runs();
  for (std::size_t i = 0; runs_here && i < items.size(); ++i) {
    at_ = body;
    line_ = body_line;
    state_.assign(variable, {items[i].text});
    if (is_unknown(items[i].text)) state_.make_unknown(variable, "a loop (" + place(line) + ")");
    read_loop_body("a loop");
    if (leaves_loop()) break;
  }
  if (!runs_here || items.empty()) {
    at_ = body;
    line_ = body_line;
    skip([this] { read_loop_body("a loop"); });
  }
  take_text(4);
}

/// for ((i = 0; ...)): how often it runs is left open.
void ShellReader::read_counting_for() {
  const int line = line_;
  state_.doubt = "$(" + bracketed('(', ')') + ")";
  skip_separators();
  if (!word_ahead("do")) fail(line, "a loop has no do", "write: for ((...)); do ...; done");
  take_text(2);
  if (!runs()) {
    skip([this] { read_loop_body("a loop"); });
    take_text(4);
    return;
  }
  for (const std::string& name : unknown_variables(state_.doubt))
    state_.make_unknown(name, "a loop (" + place(line) + ")");
  ShellBranches branches(state_);
  branches.follow(reason(line), [this] { read_loop_body("a loop"); });
  leaves_loop();
  branches.follow(reason(line), [] {});
  branches.join();
  take_text(4);
}

/// while CONDITION; do ... done
void ShellReader::read_while(bool until) {
  take_text(5);
  const std::size_t start = at_;
  const int start_line = line_;
  bool open = runs();
  const bool was_open = open;
  for (int round = 0;; ++round) {
    at_ = start;
    line_ = start_line;
    const auto condition = [this] { read_list({"do"}, "a loop"); };
    if (open)
      condition();
    else
      skip(condition);
    take_text(2);
    ShellStatus status = status_;
    if (until && status == ShellStatus::yes)
      status = ShellStatus::no;
    else if (until && status == ShellStatus::no)
      status = ShellStatus::yes;
    const bool goes_on = open && status == ShellStatus::yes && round < kMostRounds;
    const bool undecided = status == ShellStatus::unknown || status == ShellStatus::program;
    if (goes_on) {
      read_loop_body("a loop");
      if (!leaves_loop()) continue;
    } else if (open && undecided) {
      if (status == ShellStatus::program) state_.doubt = "what a program answers";
      ShellBranches branches(state_);
      branches.follow(reason(start_line), [this] { read_loop_body("a loop"); });
      branches.follow(reason(start_line), [] {});
      branches.join();
    } else {
      skip([this] { read_loop_body("a loop"); });
    }
    break;
  }
  if (was_open) status_ = ShellStatus::yes;
  take_text(4);
}

/// ( ... ) or { ...; }: what the former sets ends with it.
void ShellReader::read_subshell() {
  const bool is_subshell = take() == '(';
  const ShellVariables before = is_subshell ? state_.script.variables : ShellVariables();
  if (is_subshell)
    read_list({")"}, "a '('");
  else
    read_list({"}"}, "a '{'");
  if (!at_end()) take();
  if (!is_subshell || !runs()) return;
  state_.script.variables = before;
}

}  // namespace tessera
