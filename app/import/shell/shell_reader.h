#pragma once

#include <cctype>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/import/shell/shell_state.h"

namespace tessera {

/// Reads a text of a script and does what it says to the state, command by command. What does not
/// run (a branch that is not taken, what follows exit) is read over.
class ShellReader {
 public:
  ShellReader(std::string_view text, int line, ShellState& state)
      : text_(text), state_(state), line_(line) {}

  /// All commands. Returns how the last one ends.
  ShellStatus read_all();
  /// The whole text as one word: its expansions, quotes taken off.
  std::string read_as_word();
  /// The whole text, its expansions alone; quotes stay (a heredoc).
  std::string read_as_text();
  /// All words, as those of a command.
  std::vector<std::string> read_as_words();

 private:
  /// What a variable or a command in a word becomes. Unknown: the text of it.
  struct Expansion {
    std::vector<std::string> values;
    bool known = true;
    bool is_one = false;  ///< in quotes, too, as "${NAME[*]}"
  };
  /// What a command reads and writes besides its words.
  struct Redirects {
    std::string here;
    bool has_here = false;
    std::string output;
  };

  /// What ${...} names.
  struct Named {
    std::string variable;
    std::optional<std::vector<std::string>> value;
    std::size_t length = 0;  ///< characters that name it
    bool is_list = false;    ///< [@] or [*]
    bool is_one = false;     ///< [*]
  };

  // shell_reader.cpp: commands.
  void read_list(std::initializer_list<std::string_view> stops, const char* block);
  void skip_separators();
  void read_chain();
  ShellStatus read_pipeline();
  ShellStatus read_command();
  ShellStatus read_simple_command();
  ShellStatus read_test();
  ShellStatus read_arithmetic_command();
  bool read_function();
  void read_redirect(Redirects& redirects);
  std::string read_heredoc(bool strips, const std::string& end, bool expands);

  // shell_blocks.cpp: conditions and loops.
  void read_if();
  void read_way(ShellBranches& branches, ShellStatus status, const std::string& why);
  void read_case();
  std::string read_pattern();
  void read_for();
  void read_counting_for();
  void read_while(bool until);
  void read_loop_body(const char* block);
  bool leaves_loop();
  void read_subshell();

  // shell_commands.cpp: what commands do.
  ShellStatus run(std::vector<ShellWord> words, const Redirects& redirects);
  ShellStatus run_builtin(const std::vector<std::string>& words, bool& known);
  void run_read(const std::vector<std::string>& words, const Redirects& redirects);
  void run_set(const std::vector<std::string>& words);
  void halt(const std::string& word);
  void call(const ShellFunction& function, std::vector<std::string> arguments);
  bool run_inner(const std::vector<ShellWord>& words);
  void collect(std::vector<ShellWord> words);
  void keep_output(const std::vector<std::string>& words, const Redirects& redirects);

  // shell_expansions.cpp: words.
  bool read_assignment();
  std::vector<std::string> read_value();
  std::vector<std::string> read_array(const std::string& variable);
  void read_word(std::vector<ShellWord>& words, bool splits = true);
  bool read_quoted(std::string& text, std::vector<ShellWord>& words);
  void read_single_quoted(std::string& text);
  Expansion read_expansion();
  Expansion read_arithmetic();
  Expansion read_substitution();
  bool append_expansion(const Expansion& expansion, bool splits, bool there, ShellWord& word,
                        std::vector<ShellWord>& words) const;
  Expansion read_braces();
  Named named_in(const std::string& body);
  Expansion value_or_text(const std::string& variable, const std::string& original);
  std::string expanded(const std::string& text);

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  bool is_blank(std::size_t ahead = 0) const {
    return std::isspace(static_cast<unsigned char>(peek(ahead))) != 0;
  }
  char take();
  std::string take_text(std::size_t length);
  void skip_blanks();
  bool ends_command() const;
  bool word_ahead(std::string_view word) const;
  std::string bracketed(char open, char close);
  bool runs() const { return skipping_ == 0 && state_.halt == ShellHalt::none; }
  std::string place(int line) const { return state_.name + ":" + std::to_string(line); }
  [[noreturn]] void fail(int line, const std::string& what, const std::string& hint) const;
  void count(const std::string& text);
  /// What an undecided condition at `line` depends on, for messages.
  std::string reason(int line) const;
  /// `read` from the cursor, without any effect.
  template <class Read>
  void skip(Read read) {
    ++skipping_;
    read();
    --skipping_;
  }

  std::string_view text_;
  ShellState& state_;
  std::size_t at_ = 0;
  int line_ = 1;
  int skipping_ = 0;
  int nesting_ = 0;
  std::size_t after_heredocs_ = 0;  ///< where the line behind the next line end starts; 0: there
  ShellStatus status_ = ShellStatus::yes;  ///< of the last command
};

}  // namespace tessera
