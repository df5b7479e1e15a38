// Conditions of scripts: test, [ and [[.
#include <cctype>
#include <charconv>

#include "app/import/shell/shell_arithmetic.h"
#include "app/import/shell/shell_state.h"

namespace tessera {
namespace {

ShellStatus status_of(bool holds) {
  return holds ? ShellStatus::yes : ShellStatus::no;
}

ShellStatus inverse(ShellStatus status) {
  if (status == ShellStatus::yes) return ShellStatus::no;
  return status == ShellStatus::no ? ShellStatus::yes : status;
}

/// Recursive descent over the words: or, and, not, one comparison.
class Test {
 public:
  Test(const std::vector<std::string>& words, ShellState& state) : words_(words), state_(state) {}

  ShellStatus whole() {
    if (words_.empty()) return ShellStatus::no;
    const ShellStatus status = either();
    return at_ == words_.size() ? status : ShellStatus::unknown;
  }

 private:
  bool takes(std::string_view one, std::string_view other) {
    if (at_ >= words_.size() || (words_[at_] != one && words_[at_] != other)) return false;
    ++at_;
    return true;
  }

  ShellStatus either() {
    ShellStatus status = both();
    while (takes("||", "-o")) {
      const ShellStatus right = both();
      if (status == ShellStatus::yes) continue;
      if (status == ShellStatus::no || right == ShellStatus::yes) status = right;
    }
    return status;
  }

  ShellStatus both() {
    ShellStatus status = one();
    while (takes("&&", "-a")) {
      const ShellStatus right = one();
      if (status == ShellStatus::no) continue;
      if (status == ShellStatus::yes || right == ShellStatus::no) status = right;
    }
    return status;
  }

  ShellStatus one() {
    constexpr int kMostNesting = 64;
    if (at_ >= words_.size() || depth_ > kMostNesting) return ShellStatus::unknown;
    const bool compares = at_ + 2 < words_.size() && is_operator(words_[at_ + 1]);
    if (!compares && takes("!", "!")) {
      ++depth_;
      const ShellStatus status = inverse(one());
      --depth_;
      return status;
    }
    if (!compares && takes("(", "\\(")) {
      ++depth_;
      const ShellStatus status = either();
      --depth_;
      return takes(")", "\\)") ? status : ShellStatus::unknown;
    }
    if (compares) return comparison();
    const std::string word = words_[at_++];
    const bool asks = word.size() == 2 && word[0] == '-' && at_ < words_.size() && !joins(at_);
    return asks ? question(word[1], words_[at_++]) : inverse(is_empty(word));
  }

  bool joins(std::size_t at) const {
    return words_[at] == "&&" || words_[at] == "||" || words_[at] == "-a" || words_[at] == "-o";
  }

  static bool is_operator(const std::string& word) {
    for (const char* known : {"=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt",
                              "-ge", "-nt", "-ot", "-ef"}) {
      if (word == known) return true;
    }
    return false;
  }

  ShellStatus doubted(const std::string& what) {
    state_.doubt = what;
    return ShellStatus::unknown;
  }

  /// A text that is one unset variable is empty, as the script expects of defaults.
  ShellStatus is_empty(const std::string& word) {
    if (!is_unknown(word)) return status_of(word.empty());
    const std::vector<std::string> names = unknown_variables(word);
    const bool whole =
        names.size() == 1 && (word == "$" + names[0] || word == "${" + names[0] + "}");
    if (whole && !state_.script.undecided.contains(names[0])) return ShellStatus::yes;
    return doubted(word);
  }

  ShellStatus question(char what, const std::string& word) {
    if (what == 'z') return is_empty(word);
    if (what == 'n') return inverse(is_empty(word));
    if (what == 'v')
      return state_.script.undecided.contains(word) ? doubted("$" + word)
                                                    : status_of(state_.value_of(word).has_value());
    return doubted("the file " + word);
  }

  ShellStatus comparison() {
    const std::string left = words_[at_];
    const std::string op = words_[at_ + 1];
    const std::string right = words_[at_ + 2];
    at_ += 3;
    const bool equal = op == "=" || op == "==";
    if ((equal || op == "!=") && (right.empty() || left.empty())) {
      const ShellStatus empty = is_empty(right.empty() ? left : right);
      return equal ? empty : inverse(empty);
    }
    if (is_unknown(left)) return doubted(left);
    if (op == "=~") return doubted("whether " + left + " matches a pattern");
    if (is_unknown(right)) return doubted(right);
    if (equal) return status_of(matches_glob(left, right));
    if (op == "!=") return status_of(!matches_glob(left, right));
    if (op == "<" || op == ">") return status_of(op == "<" ? left < right : left > right);
    return numbers(left, op, right);
  }

  ShellStatus numbers(const std::string& left, const std::string& op, const std::string& right) {
    const auto value_of = [this](const std::string& variable) {
      return joined(state_.value_of(variable).value_or(std::vector<std::string>{}));
    };
    const auto a = shell_arithmetic(left, value_of);
    const auto b = shell_arithmetic(right, value_of);
    if (!a || !b) return doubted(left + " " + op + " " + right);
    if (op == "-eq") return status_of(*a == *b);
    if (op == "-ne") return status_of(*a != *b);
    if (op == "-lt") return status_of(*a < *b);
    if (op == "-le") return status_of(*a <= *b);
    if (op == "-gt") return status_of(*a > *b);
    if (op == "-ge") return status_of(*a >= *b);
    return doubted(left + " " + op + " " + right);
  }

  const std::vector<std::string>& words_;
  ShellState& state_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ShellStatus shell_test(const std::vector<std::string>& words, ShellState& state) {
  return Test(words, state).whole();
}

}  // namespace tessera
